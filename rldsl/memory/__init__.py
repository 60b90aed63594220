"""Rollouts and replay, over members."""
