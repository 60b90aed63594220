"""Running a plan: select sessions, freeze code and plan, pack, start, follow, stop; local, SLURM and dstack."""
