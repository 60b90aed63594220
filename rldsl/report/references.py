"""Published scores and targets of environments, shipped with the package, and the one that is closest to a result.

`data/scores.csv` has a row for each published score: environment, algorithm, score, standard deviation, frames,
number of seeds, protocol and source; `data/targets.csv` has a target for each environment.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rldsl.spec.agent import PPO, Agent
from rldsl.spec.off_policy import DQN

DATA = Path(__file__).with_name("data")

SAME_METRIC = "training, last 100 log points"
"""The protocol of this package's own scores."""
PROTOCOLS = {
    SAME_METRIC: 0.0,
    "training": 0.5,
    "evaluation at the last frame": 1.0,
    "final evaluation": 1.0,
    "best evaluation": 1.5,
    "published table": 1.5,
    "read from a figure": 2.0,
}
"""How far each protocol is from this package's own; a factor of two in frames, or one version of the environment,
counts as 1."""


@dataclass(frozen=True)
class Reference:
    """A published score."""

    env: str
    algorithm: str
    score: float
    std: float | None
    frames: int
    n: int | None
    protocol: str
    source: str

    def data(self) -> dict[str, Any]:
        """The reference as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PublishedTarget:
    """The score at which an environment counts as solved."""

    env: str
    target: float
    source: str

    def data(self) -> dict[str, Any]:
        """The target as JSON."""
        return asdict(self)


@cache
def references() -> tuple[Reference, ...]:
    """Every published score, by environment, algorithm and frames."""
    return tuple(
        Reference(
            row["env"],
            row["algorithm"],
            float(row["score"]),
            float(row["std"]) if row["std"] else None,
            int(row["frames"]),
            int(row["n"]) if row["n"] else None,
            row["protocol"],
            row["source"],
        )
        for row in _rows("scores.csv")
    )


@cache
def published_targets() -> tuple[PublishedTarget, ...]:
    """The target of each environment."""
    return tuple(PublishedTarget(row["env"], float(row["target"]), row["source"]) for row in _rows("targets.csv"))


def closest_reference(env: str, agent: Agent, frames: int) -> Reference | None:
    """The score of the same algorithm in the same environment whose protocol is closest; None if there is none."""
    algorithm, (task, version) = algorithm_name(agent), _task(env)

    def distance(one: Reference) -> tuple[float, int]:
        versions = abs(_task(one.env)[1] - version)
        return versions + PROTOCOLS[one.protocol] + abs(math.log2(one.frames / frames)), -(one.n or 0)

    candidates = [one for one in references() if one.algorithm == algorithm and _task(one.env)[0] == task]
    return min(candidates, key=distance, default=None)


def algorithm_name(agent: Agent) -> str:
    """The name of an agent in tables of scores: PPO, DDQN+PER, CrossQ."""
    if isinstance(agent, DQN) and agent.prioritized is not None:
        return "DDQN+PER" if agent.double else "DQN+PER"
    if isinstance(agent, PPO) and agent.sil is not None:
        return "PPO+SIL"
    named = {"crossq": "CrossQ", "random": "random policy"}
    return named.get(agent.kind, agent.kind.upper())


def matching(env: str | None) -> tuple[list[PublishedTarget], list[Reference]]:
    """Targets and scores of an environment in any version; else of those whose id contains the text; of all without."""
    wanted = _task(env or "")[0].lower()
    ids = [*(one.env for one in references()), *(one.env for one in published_targets())]
    tasks = {_task(id)[0].lower() for id in ids}
    chosen = {wanted} if wanted in tasks else {task for task in tasks if wanted in task}
    targets = [one for one in published_targets() if _task(one.env)[0].lower() in chosen]
    return targets, [one for one in references() if _task(one.env)[0].lower() in chosen]


def _task(env: str) -> tuple[str, int]:
    """`Hopper-v5` as `("Hopper", 5)`; an id without a version has version 0."""
    match = re.fullmatch(r"(.*)-v(\d+)", env)
    return (match[1], int(match[2])) if match else (env, 0)


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))
