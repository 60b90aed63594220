"""Extending sessions: a finished session with fewer frames whose training a longer one can continue.

The longer session starts from the last checkpoint before the end of the shorter one, which is a checkpoint that it
would have had itself: it is computed as if it had been trained with the longer budget from the start.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rldsl.spec.base import identity
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Trial
from rldsl.spec.paths import nodes
from rldsl.spec.schedule import Schedule
from rldsl.spec.session import Session
from rldsl.store.checkpoint import checkpoint_frames
from rldsl.store.code_version import CodeVersions
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir


class Extension(NamedTuple):
    """The finished session that a longer one continues, and the frame of the checkpoint that it starts from."""

    source: SessionDir
    frames: int
    """The budget of the shorter session."""
    frame: int
    thinned: bool = False
    """Whether the longer session has only some of the log points of the shorter one."""


class NotExtended(NamedTuple):
    """Why a finished session with fewer frames cannot be continued."""

    source: SessionDir
    frames: int
    reason: str


@dataclass(frozen=True)
class _Candidate:
    directory: SessionDir
    trial: Trial

    @cached_property
    def finished(self) -> bool:
        return self.directory.read_state().state == "done"


class Extensions:
    """The sessions of a run directory that longer ones may continue."""

    def __init__(self, runs: Path, directories: Iterable[str], code: CodeVersions | None) -> None:
        self.runs, self.code = runs, code
        self._directories: dict[tuple[str, str, str], list[str]] = {}
        for directory in sorted(directories):
            env, trial, seed = directory.split("/")
            self._directories.setdefault((env, trial.rpartition("-")[0], seed), []).append(directory)
        self._candidates: dict[tuple[str, str, str], dict[str, list[_Candidate]]] = {}

    def of(self, trial: Trial, seed: int) -> Extension | NotExtended | None:
        """How a session that does not exist yet can start: from the longest finished one with fewer frames."""
        kind = (trial.env.slug, trial.agent.kind, f"seed-{seed}")
        if kind not in self._candidates:
            self._candidates[kind] = _by_settings(self._read(kind))
        shorter = [
            one
            for one in self._candidates[kind].get(_settings(trial), ())
            if one.trial.budget.frames < trial.budget.frames
        ]
        for one in sorted(shorter, key=lambda one: -one.trial.budget.frames):
            if one.finished:
                return self._decide(one, trial)
        return None

    def _read(self, kind: tuple[str, str, str]) -> Iterator[_Candidate]:
        for directory in self._directories.get(kind, ()):
            session = SessionDir(self.runs / directory)
            try:
                yield _Candidate(session, Session.from_record(session.read_session()).trial)
            except (SpecError, StoreError):
                continue

    def _decide(self, one: _Candidate, trial: Trial) -> Extension | NotExtended:
        frames = one.trial.budget.frames
        if reason := obstacle(one.trial, trial) or self._other_code(one):
            return NotExtended(one.directory, frames, reason)
        saved = [frame for frame in checkpoint_frames(one.directory.checkpoints) if frame < frames]
        if not saved:
            return NotExtended(one.directory, frames, "it has no checkpoint before its end")
        thinned = one.trial.budget.log_interval != trial.budget.log_interval
        return Extension(one.directory, frames, saved[0], thinned)

    def _other_code(self, one: _Candidate) -> str | None:
        code = one.directory.read_state().code
        if self.code is None or code is None or code == self.code.of(one.trial).digest:
            return None
        return "other code has trained it"


def obstacle(shorter: Trial, longer: Trial) -> str | None:
    """Why training with the longer budget is not the same up to the end of the shorter one; None if it is."""
    unused = {f"agent.{name}" for name in longer.agent.unused}
    schedules = [(path, node) for path, node in nodes(longer) if isinstance(node, Schedule) and path not in unused]
    if paths := [path for path, schedule in schedules if schedule.needs_budget]:
        return f"{' and '.join(paths)} depends on the whole budget, so it is a different trial"
    if not longer.agent.extends:
        return f"{type(longer.agent).__name__} depends on the whole budget, so it is a different trial"
    if schedules and longer.evaluation is not None and not longer.evaluation.deterministic:
        return "it is evaluated with sampled actions, whose exploration depends on the budget"
    return _log_obstacle(shorter.budget.log_interval, longer.budget.log_interval, longer.on_log is not None)


def _log_obstacle(shorter: int, longer: int, hooked: bool) -> str | None:
    """A longer log interval is fine if its log points are some of the shorter one's, and no hook saw the others."""
    if longer % shorter:
        reason = f"it has a log point every {shorter:,} frames, and {longer:,} is not a multiple"
    elif longer != shorter and hooked:
        reason = f"its .on_log function was called every {shorter:,} frames"
    else:
        return None
    return f"{reason}: --set log_every={shorter} continues it"


def _settings(trial: Trial) -> str:
    """Everything but the budget."""
    return json.dumps({**identity(trial), "budget": None}, sort_keys=True)


def _by_settings(candidates: Iterable[_Candidate]) -> dict[str, list[_Candidate]]:
    found: dict[str, list[_Candidate]] = {}
    for one in candidates:
        found.setdefault(_settings(one.trial), []).append(one)
    return found
