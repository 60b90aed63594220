"""The Python API beside experiment files: train in this process, read runs, load policies. Exported by `rldsl`."""

from rldsl.api.policy import load_policy
from rldsl.api.run import run
from rldsl.api.runs import Run, load_runs

__all__ = ["Run", "load_policy", "load_runs", "run"]
