"""Frozen, validated models of an experiment. No torch, no I/O."""
