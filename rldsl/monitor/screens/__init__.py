"""The screens of the monitor, one per file."""
