"""Deep reinforcement learning experiments as code."""

from rldsl._interrupt import imported
from rldsl.api import Run, load_policy, load_runs, run
from rldsl.builders.axes import choice, grid, int_uniform, log_uniform, logit_uniform, uniform, when, zipped
from rldsl.builders.experiment import experiment
from rldsl.cli import main
from rldsl.spec.agent import A2C, PPO, SIL, Agent, Random, Reinforce, Sarsa
from rldsl.spec.dstack import Dstack
from rldsl.spec.environment import Atari, Box2D, Classic, Environment, Gym, MuJoCo, Playground, Wrapper
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.spec.launcher import Launcher, Local, Slurm
from rldsl.spec.net import MLP, Conv, Net, Recurrent
from rldsl.spec.off_policy import DQN, SAC, CrossQ, Prioritized
from rldsl.spec.optimizer import Adam, AdamW, Optimizer, RMSprop
from rldsl.spec.schedule import Constant, Cosine, Exponential, Linear, Schedule, Steps

__all__ = [
    "A2C",
    "DQN",
    "MLP",
    "PPO",
    "SAC",
    "SIL",
    "Adam",
    "AdamW",
    "Agent",
    "Atari",
    "Box2D",
    "Classic",
    "Constant",
    "Conv",
    "Cosine",
    "CrossQ",
    "Dstack",
    "Environment",
    "Experiment",
    "Exponential",
    "Gym",
    "Launcher",
    "Linear",
    "Local",
    "MuJoCo",
    "Net",
    "Optimizer",
    "Playground",
    "Prioritized",
    "RMSprop",
    "Random",
    "Recurrent",
    "Reinforce",
    "Run",
    "Sarsa",
    "Schedule",
    "Slurm",
    "SpecError",
    "Steps",
    "Wrapper",
    "choice",
    "experiment",
    "grid",
    "int_uniform",
    "load_policy",
    "load_runs",
    "log_uniform",
    "logit_uniform",
    "main",
    "run",
    "uniform",
    "when",
    "zipped",
]


def __getattr__(name: str) -> str:
    """`__version__`, read from the installed package's metadata when it is first asked for."""
    if name != "__version__":
        raise AttributeError(f"module 'rldsl' has no attribute {name!r}")
    from importlib.metadata import version

    return version("rldsl")


imported()
