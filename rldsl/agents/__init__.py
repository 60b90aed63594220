"""Algorithms, one module each, and the base classes they share. All of them train several members at once."""
