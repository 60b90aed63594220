"""Planned sessions and their state in the run directory, with an estimate of the time that they still take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median

from rldsl.plan.extend import Extension, Extensions, NotExtended
from rldsl.plan.plan import Plan, Row
from rldsl.spec.session import session_id
from rldsl.store.code_version import CodeVersions
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState, State

ENOUGH = 8
"""Earlier sessions of the same agent and environment that an estimate is based on, at most."""


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """One seed of a planned trial, and its state on disk when the plan was compared with the run directory."""

    row: Row
    seed: int
    directory: str
    """Relative to the run directory."""
    on_disk: SessionState

    @property
    def id(self) -> str:
        return session_id(self.row.id, self.seed)

    @property
    def state(self) -> State:
        return self.on_disk.state

    @property
    def frames(self) -> int:
        return self.row.trial.budget.frames

    @property
    def frames_left(self) -> int:
        """Frames that are still to be trained."""
        return 0 if self.state == "done" else max(0, self.frames - self.on_disk.frame)

    @property
    def lacks(self) -> str | None:
        """What this machine lacks to train it; None if nothing, or if it is done or running already."""
        missing = None if self.state in ("done", "running") else self.row.trial.env.missing()
        return missing and f"{self.row.experiment} cannot run here: {missing}"


def planned_session(
    row: Row, seed: int, runs: Path, *, exists: bool = True, code: CodeVersions | None = None
) -> PlannedSession:
    """A session of a trial, joined with its directory unless that is known not to exist, and compared with `code`."""
    directory = row.directory(seed)
    new = SessionState(
        experiment=row.experiment,
        session=session_id(row.id, seed),
        seed=seed,
        frames=row.trial.budget.frames,
        target=row.target.score if row.target else None,
        directory=str(runs / directory),
    )
    state = SessionDir(runs / directory).read_state(new) if exists else new
    if code is not None and state.code is not None and state.state != "running":
        state = replace(state, other_code=state.code != code.of(row.trial).digest)
    return PlannedSession(row, seed, directory, state)


class Existing:
    """The sessions of a run directory, listed once."""

    def __init__(self, runs: Path, code: CodeVersions | None = None) -> None:
        """With `code`, sessions that other code trained are marked."""
        self.runs, self.code = runs, code
        self.directories = Runs(runs).existing()
        self._speeds: dict[tuple[str, str], float | None] = {}
        self._by_kind: dict[tuple[str, str], list[str]] = defaultdict(list)
        for directory in sorted(self.directories):
            env, trial, _ = directory.split("/")
            self._by_kind[env, trial.rpartition("-")[0]].append(directory)

    def planned(self, row: Row) -> list[PlannedSession]:
        """The sessions of a trial."""
        return [self._planned(row, seed) for seed in row.seeds]

    def sessions(self, plan: Plan) -> Iterator[PlannedSession]:
        """The sessions of a plan, each once, however many of its experiments share it."""
        seen: set[str] = set()
        for row in plan.rows():
            for planned in self.planned(row):
                if planned.id not in seen:
                    seen.add(planned.id)
                    yield planned

    def _planned(self, row: Row, seed: int) -> PlannedSession:
        exists = row.directory(seed) in self.directories
        return planned_session(row, seed, self.runs, exists=exists, code=self.code)

    def extension(self, planned: PlannedSession) -> Extension | NotExtended | None:
        """For a session that has not been started: the finished one with fewer frames that it continues, if any."""
        if planned.state != "new" or planned.on_disk.frame:
            return None
        return self._extensions.of(planned.row.trial, planned.seed)

    @cached_property
    def _extensions(self) -> Extensions:
        return Extensions(self.runs, self.directories, self.code)

    def frames_left(self, planned: PlannedSession) -> int:
        """Frames that are still to be trained, without those that a shorter session has trained already."""
        extension = self.extension(planned)
        return planned.frames_left - (extension.frame if isinstance(extension, Extension) else 0)

    def seconds_left(self, planned: PlannedSession) -> float | None:
        """An estimate from earlier sessions of the same agent in the same environment, if there are any."""
        speed = self._speed(planned)
        return None if speed is None else self.frames_left(planned) / speed

    def _speed(self, planned: PlannedSession) -> float | None:
        """Frames per second of the session itself once it has run for a while, otherwise of sessions of its kind."""
        if planned.on_disk.frame and planned.on_disk.seconds > 1:
            return planned.on_disk.frame / planned.on_disk.seconds
        trial = planned.row.trial
        kind = (trial.env.slug, trial.agent.kind)
        if kind not in self._speeds:
            self._speeds[kind] = self._median_speed(self._by_kind[kind])
        return self._speeds[kind]

    def _median_speed(self, directories: list[str]) -> float | None:
        states = [SessionDir(self.runs / directory).read_state() for directory in directories[:ENOUGH]]
        speeds = [state.frame / state.seconds for state in states if state.frame and state.seconds > 0]
        return median(speeds) if speeds else None
