"""The trials of a search as plans and sessions: their specs, their states on disk, and what they are doing."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from rldsl.launch.observer import FollowedSession
from rldsl.plan.existing import PlannedSession, planned_session
from rldsl.plan.expand import trial_of
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.search.history import TrialHistory
from rldsl.spec.search import Point
from rldsl.store.errors import StoreError, writing
from rldsl.store.journal import Garbage, JournalReader, read_journal
from rldsl.store.plan_file import PLANS, save_plan
from rldsl.store.plan_parts import Row
from rldsl.store.search_dir import SearchDir
from rldsl.store.session_dir import SessionDir


class SearchTrials:
    """Makes the trials of a search from their points; `seeds` are those of its last rung."""

    def __init__(self, directory: SearchDir, runs: Path, seeds: Sequence[int]) -> None:
        self.runs, self.seeds = runs, tuple(seeds)
        self.experiment, self.overrides = directory.experiment(), directory.overrides()
        self.name = directory.path.name
        self._rows: dict[int, Row] = {}
        self._followed: dict[str, tuple[FollowedSession, JournalReader]] = {}

    def make(self, number: int, point: Point) -> Row:
        """The trial at a point; raises `SpecError` if its settings do not fit together."""
        trial, experiment = trial_of(self.experiment, point), self.experiment
        row = Row(experiment.name, trial, trial.id, self.seeds, dict(point), experiment.target, self.overrides)
        self._rows[number] = row
        return row

    def row(self, trial: TrialHistory) -> Row:
        """A trial of the journal."""
        row = self._rows.get(trial.number) or self.make(trial.number, dict(trial.point))
        if row.id != trial.id:
            problem = f"its trial {trial.number} was {trial.id} and is {row.id} now"
            raise StoreError(f"the search {self.name} was started by another version of the code: {problem}")
        return row

    def sessions(self, trial: TrialHistory, seeds: Sequence[int]) -> list[PlannedSession]:
        """Sessions of a trial, as they are on disk now."""
        row = self.row(trial)
        return [planned_session(row, seed, self.runs) for seed in seeds]

    def write_plan(self, sessions: Sequence[PlannedSession]) -> Path:
        """Freezes the trials of these sessions into a plan file for workers."""
        folder = self.runs / PLANS
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}-{time.time_ns()}.json"
        header = make_plan([Overridden(self.experiment, self.overrides)]).header()
        save_plan(path, header, [row.data() for row in {one.row.id: one.row for one in sessions}.values()])
        return path

    def crashed_in_a_pack(self, planned: PlannedSession) -> bool:
        """Whether a session failed with an error of a process that it shared: any of its members may be the cause."""
        state = planned.on_disk
        if state.state != "failed" or (state.reason or "").startswith("diverged"):
            return False
        events = read_journal(SessionDir(self.runs / planned.directory).journal.path)
        started = [event for event in events if not isinstance(event, Garbage) and event["event"] == "started"]
        return bool(started) and started[-1].get("members", 1) > 1

    def follow(self, sessions: Sequence[PlannedSession]) -> None:
        """Begins to follow sessions; events of their journals up to now are old."""
        for planned in sessions:
            reader = JournalReader(SessionDir(self.runs / planned.directory).journal.path)
            reader.read_new()
            self._followed[planned.id] = (FollowedSession.start(planned, self.runs), reader)

    def running(self, busy: Collection[str]) -> list[FollowedSession]:
        """The sessions that run now, each with its last log point."""
        self._followed = {id: one for id, one in self._followed.items() if id in busy}
        for session, _ in self._followed.values():
            session.read()
        return [session for session, _ in self._followed.values()]

    def newly_failed(self) -> set[str]:
        """Sessions that have failed since the last call while the other members of their pack train on."""
        events = {id: reader.read_new() for id, (_, reader) in self._followed.items()}
        return {
            id
            for id, new in events.items()
            if any(not isinstance(event, Garbage) and event["event"] == "failed" for event in new)
        }

    def last_log_line(self, planned: PlannedSession) -> str | None:
        """The last line of a session's log."""
        lines = [line for line in FollowedSession.start(planned, self.runs).last_log_lines() if line.strip()]
        return lines[-1].strip() if lines else None
