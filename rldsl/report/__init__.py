"""Scores, learning curves and differences of sessions, and how numbers are written."""
