"""The screens of the monitor, one a file."""
