"""A plan file: one JSON document, written one trial per line, so that plans of any size can be streamed.

`read_plan` is the only reader. It verifies the schema version and that every trial still hashes to its id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rldsl.spec.base import SCHEMA
from rldsl.spec.budget import Target
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Trial
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.session import Override, Session, session_directory
from rldsl.store.errors import StoreError, writing

PLANS = ".plans"
"""The folder of frozen plans in a run directory."""
FORMAT = "rldsl.plan"
OPENING = ', "trials": [\n'
CLOSING = "]}"


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

    @classmethod
    def of(cls, data: dict[str, Any]) -> SearchCost:
        """The cost that a plan file holds."""
        rungs = tuple(RungCost(**rung) for rung in data["rungs"])
        stages = tuple(StageCost(**stage) for stage in data["stages"])
        return cls(tuple(data["axes"]), data["samples"], data["total"], rungs, stages)


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
        }


def plan_header(parts: Iterable[Part]) -> dict[str, Any]:
    """The document without its trials."""
    return {"schema": SCHEMA, "experiments": [part.data() for part in parts]}


def write_plan(out: TextIO, header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> None:
    """Writes the document to an open stream, a trial at a time."""
    out.write(json.dumps({"format": FORMAT, **header}).removesuffix("}") + OPENING)
    separator = ""
    for trial in trials:
        out.write(separator + json.dumps(trial))
        separator = ",\n"
    out.write(f"\n{CLOSING}\n")


def save_plan(path: Path, header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> None:
    """Writes the document to a temporary file and renames it; if anything fails, an earlier file stays as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            with temporary.open("x") as out:
                write_plan(out, header, trials)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


@dataclass(frozen=True)
class PlanFile:
    """An open plan file, of the schema version of this package."""

    path: Path
    header: dict[str, Any]

    def parts(self) -> tuple[Part, ...]:
        """The experiments of the plan."""
        with _well_formed(self.path):
            return tuple(_part(data) for data in self.header["experiments"])

    def rows(self, only: Collection[str] | None = None) -> Iterator[Row]:
        """The trials one at a time, each verified as it is read; trials whose id is not in `only` are skipped."""
        with _well_formed(self.path):
            shared = {data["name"]: _shared(data) for data in self.header["experiments"]}
        for data in _read_document(self.path)[1]:
            with _well_formed(self.path):
                if only is None or data["id"] in only:
                    yield _row(self.path, data, *shared[data["experiment"]])


def read_plan(path: Path) -> PlanFile:
    """Opens a plan file; refuses one of another schema version."""
    header, _ = _read_document(path)
    if header.get("schema") != SCHEMA:
        raise SpecError(
            f"the plan {path} has schema {header.get('schema')}, this version has {SCHEMA}: make a new plan"
        )
    return PlanFile(path, header)


def _part(data: dict[str, Any]) -> Part:
    target, overrides = _shared(data)
    launcher = Launcher.parse(data.get("launcher") or "local")
    cost = SearchCost.of(data["cost"]) if data.get("cost") else None
    return Part(**{**data, "target": target, "overrides": overrides, "launcher": launcher, "cost": cost})


def _shared(data: dict[str, Any]) -> tuple[Target | None, tuple[Override, ...]]:
    """What the sessions of an experiment have in common, beside their trials."""
    target = Target.parse(data["target"]) if data["target"] else None
    return target, tuple(Override.parse(one) for one in data["overrides"])


def _row(path: Path, data: dict[str, Any], target: Target | None, overrides: tuple[Override, ...]) -> Row:
    trial = Trial.parse(data["spec"], root=f"{path}, trial {data['id']}")
    if trial.id != data["id"]:
        raise SpecError(f"{path}: trial {data['id']} was changed by hand, it is {trial.id} now")
    seeds = tuple(data["seeds"])
    if not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise TypeError(f"seeds {data['seeds']}")
    return Row(data["experiment"], trial, trial.id, seeds, dict(data["differs"]), target, overrides)


@contextmanager
def _well_formed(path: Path) -> Iterator[None]:
    """Fields that are missing or of another type are one sentence."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"the plan {path} is damaged: {type(error).__name__} {error}") from error


def _read_document(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The header, and the trials as they are in the file."""
    try:
        with path.open() as file:
            first = file.readline()
        if first.endswith(OPENING):
            return _checked(path, _parsed(path, first + CLOSING)), _streamed(path)
        whole = _checked(path, _parsed(path, path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise StoreError(f"cannot read the plan {path}: {str(reason).lower()}") from error
    return whole, iter(whole["trials"])


def _streamed(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(errors="replace") as file:
        next(file)
        for line in file:
            if line.strip() == CLOSING:
                return
            yield _parsed(path, line.rstrip().removesuffix(","))
    raise StoreError(f"the plan {path} is cut short")


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise StoreError(f"{path} is not a plan: {error}") from error
    return value if isinstance(value, dict) else {}


def _checked(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    if document.get("format") != FORMAT or not isinstance(document.get("trials"), list):
        raise StoreError(f"{path} is not a plan: `plan --out FILE` writes one")
    return document
