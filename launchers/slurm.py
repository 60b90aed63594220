"""A SLURM cluster: jobs of one core, as many at a time as the site lets you have."""

from rldsl import Slurm

launcher = Slurm(cpus=1, memory_gb=4, hours=12)
