"""Projects with a search that is cheap to train: an agent that pushes the cart to one side, with some probability."""

from __future__ import annotations

import inspect
import json
import textwrap
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from rldsl import Agent
from rldsl.extend import Fraction, PerMember
from tests.project import Project


class Coin(Agent, frozen=True):
    """Pushes to the right with a probability; crashes above 0.9, diverges below 0.1."""

    kind: Literal["coin"] = "coin"
    implementation: ClassVar[str] = "coin:CoinAgent"
    p: Annotated[Fraction, PerMember] = 0.5


AGENT = """
    import os
    import time

    import numpy as np

    from rldsl.agents.random import RandomAgent

    SLEEP = float(os.environ.get("COIN_SLEEP", "0"))


    class CoinAgent(RandomAgent):
        def iterate(self, world):
            probabilities = [spec.p for spec in self.context.specs]
            draws = [rng.random(self.context.num_envs) < p for rng, p in zip(self.rngs, probabilities)]
            world.step(np.concatenate(draws).astype(np.int64))
            time.sleep(SLEEP)
            if any(p > 0.9 for p in probabilities) and world.frame >= 100:
                raise RuntimeError(f"the coin of {os.getpid()} is lost")

        def diverged(self):
            return [spec.p < 0.1 for spec in self.context.specs]

        def reset_diverged(self, member):
            pass
"""
IMPORTS = """
from typing import Annotated, ClassVar, Literal

from rldsl import Agent, Classic, Local, choice, experiment, main, uniform
from rldsl.extend import Fraction, PerMember
"""
EXPERIMENT = """
cartpole = experiment("x").env(Classic("CartPole-v1", num_envs=2)).agent(Coin()).frames(400).log_every(20)
coin = cartpole.checkpoint_every(40).on(Local(parallel=PARALLEL, members=4))

if __name__ == "__main__":
    main(coin.search(p=AXIS).METHOD)
"""


def write(project: Project, method: str, axis: str = "uniform(0.1, 0.9)", parallel: int = 1) -> None:
    """Writes `exp.py`, which declares one search."""
    text = EXPERIMENT.replace("METHOD", method).replace("AXIS", axis).replace("PARALLEL", str(parallel))
    project.write("\n\n".join([IMPORTS, textwrap.dedent(inspect.getsource(Coin)), text]))
    project.write(AGENT, "coin.py")


def directory(project: Project) -> Path:
    """The directory of the only search."""
    (path,) = (project.runs / ".searches").iterdir()
    return path


def journal(project: Project) -> list[dict[str, Any]]:
    """The events of the search, without what the clock says."""
    lines = (directory(project) / "journal.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in CLOCKED} for line in lines]


CLOCKED = ("time", "seconds", "crc")
