"""Algorithms: one file each, over members."""
