"""What the run directory holds already: the state of each planned session, and how fast its kind has been."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rldsl.plan.plan import Row
from rldsl.spec.session import session_id
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir, StateReport

ENOUGH = 8
"""Earlier sessions of a kind that an estimate looks at."""


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """A planned session and how it stands."""

    row: Row
    seed: int
    directory: str
    report: StateReport

    @property
    def id(self) -> str:
        return session_id(self.row.id, self.seed)

    @property
    def frames(self) -> int:
        return self.row.trial.budget.frames

    @property
    def left(self) -> int:
        """Frames that are still to be trained."""
        return 0 if self.report.state == "done" else max(0, self.frames - self.report.frame)

    @property
    def lacks(self) -> str | None:
        """What this machine lacks to go on with it; None: nothing, or it is done or under way already."""
        missing = None if self.report.state in ("done", "running") else self.row.trial.env.missing()
        return missing and f"{self.row.experiment} cannot run here: {missing}"


class Existing:
    """A run directory, listed once."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.directories = Runs(runs).existing()
        self._speeds: dict[tuple[str, str], float | None] = {}
        self._by_kind: dict[tuple[str, str], list[str]] = defaultdict(list)
        for directory in sorted(self.directories):
            env, trial, _ = directory.split("/")
            self._by_kind[env, trial.rpartition("-")[0]].append(directory)

    def planned(self, row: Row) -> list[PlannedSession]:
        """How each session of a trial stands."""
        return [self._planned(row, seed) for seed in row.seeds]

    def _planned(self, row: Row, seed: int) -> PlannedSession:
        directory = row.directory(seed)
        if directory not in self.directories:
            return PlannedSession(row, seed, directory, StateReport())
        return PlannedSession(row, seed, directory, SessionDir(self.runs / directory).report())

    def seconds_left(self, planned: PlannedSession) -> float | None:
        """An estimate from earlier sessions of the same agent in the same environment, where there are any."""
        speed = self._speed(planned)
        return None if speed is None else planned.left / speed

    def _speed(self, planned: PlannedSession) -> float | None:
        """Frames a second: of the session itself once it has run a while, otherwise of its kind."""
        if planned.report.frame and planned.report.seconds > 1:
            return planned.report.frame / planned.report.seconds
        trial = planned.row.trial
        kind = (trial.env.slug, trial.agent.kind)
        if kind not in self._speeds:
            self._speeds[kind] = self._median_speed(self._by_kind[kind])
        return self._speeds[kind]

    def _median_speed(self, directories: list[str]) -> float | None:
        reports = [SessionDir(self.runs / directory).report() for directory in directories[:ENOUGH]]
        speeds = [report.frame / report.seconds for report in reports if report.frame and report.seconds > 0]
        return median(speeds) if speeds else None
