"""Plan to jobs to processes: start, follow, stop."""
