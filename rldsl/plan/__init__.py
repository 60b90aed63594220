"""Experiment to trials to sessions: identity, overrides, what exists already."""
