"""What a plan consists of: its experiments, each with its size, and its trials with their seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rldsl.spec.budget import Target
from rldsl.spec.experiment import Trial
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.session import Override, Session, session_directory


@dataclass(frozen=True, slots=True)
class Row:
    """A trial of a plan, with its seeds and the settings in which it differs from the other trials."""

    experiment: str
    trial: Trial
    id: str
    seeds: tuple[int, ...]
    differs: dict[str, Any]
    target: Target | None
    overrides: tuple[Override, ...]

    def session(self, seed: int) -> Session:
        """The session of a seed."""
        return Session(
            experiment=self.experiment, trial=self.trial, seed=seed, target=self.target, overrides=self.overrides
        )

    def sessions(self) -> Iterator[Session]:
        """A session for each seed."""
        return (self.session(seed) for seed in self.seeds)

    def directory(self, seed: int) -> str:
        """The directory of the session of a seed, relative to the run directory."""
        return session_directory(self.trial.env.slug, self.trial.agent.kind, self.id, seed)

    def data(self) -> dict[str, Any]:
        """The row in a plan file."""
        return {
            "experiment": self.experiment,
            "id": self.id,
            "differs": self.differs,
            "seeds": list(self.seeds),
            "spec": self.trial.data(),
        }


@dataclass(frozen=True)
class RungCost:
    """A rung of a search and the trials that are expected to reach it."""

    frames: int
    seeds: int
    trials: float
    cost: int
    """Frames that these trials train to come here from the rung below."""


@dataclass(frozen=True)
class StageCost:
    """A later stage of a staged search: all its trials train to the end."""

    name: str
    trials: int
    seeds: int
    frames: int
    """Frames of all its sessions."""


@dataclass(frozen=True)
class SearchCost:
    """The size of a sampled search."""

    axes: tuple[str, ...]
    """Paths of the sampled axes; zipped ones by their first path."""
    samples: int
    total: int | None
    """Frames if every trial trains to the end with all seeds; None if trials differ in their frames."""
    rungs: tuple[RungCost, ...] = ()
    stages: tuple[StageCost, ...] = ()
    """The stages after it; their frames are not part of `total` and `expected`."""

    @property
    def expected(self) -> int | None:
        """Frames that are expected to be trained."""
        return sum(rung.cost for rung in self.rungs) if self.rungs else self.total

    def data(self) -> dict[str, Any]:
        """The cost in a plan file."""
        return {**asdict(self), "expected": self.expected}


@dataclass(frozen=True)
class Part:
    """An experiment of a plan: what all its trials have in common."""

    name: str
    trials: int
    seeds: int
    frames: int
    search: str | None
    adaptive: bool
    target: Target | None
    overrides: tuple[Override, ...]
    work: str | None
    """Gradient steps and memory of a session, which its spec does not show."""
    launcher: Launcher = field(default_factory=Local)
    cost: SearchCost | None = None
    """Of a sampled search."""
    after: tuple[str, ...] = ()
    """Experiments whose sessions must be done before those of this one start."""

    @property
    def sessions(self) -> int:
        return self.trials * self.seeds

    def data(self) -> dict[str, Any]:
        """The experiment in a plan file."""
        return {
            "name": self.name,
            "trials": self.trials,
            "seeds": self.seeds,
            "frames": self.frames,
            "search": self.search,
            "adaptive": self.adaptive,
            "target": self.target.data() if self.target else None,
            "overrides": [override.data() for override in self.overrides],
            "work": self.work,
            "launcher": self.launcher.data(),
            "cost": self.cost.data() if self.cost else None,
            **({"after": list(self.after)} if self.after else {}),
        }
