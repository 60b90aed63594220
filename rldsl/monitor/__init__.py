"""The monitor: a terminal program over the run directory, live and light."""
