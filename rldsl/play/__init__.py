"""Trained policies: load one, act with it, play episodes, record videos."""
