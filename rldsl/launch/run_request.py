"""What to run, and how it went."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rldsl.launch.observer import Observer
from rldsl.launch.other_code import Decision, settle
from rldsl.launch.select import TRAIN, Selection
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import writing
from rldsl.store.plan_file import PLANS
from rldsl.store.session_state import State


@dataclass(frozen=True)
class RunRequest:
    """Which sessions of a plan to run. Where they run is the plan's `launcher`."""

    plan: Plan
    runs: Path
    file: Path | None
    """The experiment file, for the classes that it defines."""
    command: Sequence[str]
    """The command of the user, for the provenance of the sessions."""
    states: Collection[State] = TRAIN
    """States of the sessions to run: `select.TRAIN` or `select.RESUME`."""
    detach: bool = False
    """Return once the jobs are submitted."""
    cancel_stale: bool = False
    """Cancel jobs of the plan's experiments that the plan no longer contains."""
    other_code: Decision = "refuse"
    """What to do with sessions that other code has trained."""

    @property
    def launcher(self) -> Launcher:
        return self.plan.launcher

    def settle(self) -> Existing:
        """The sessions on disk, after what is to be done with those that other code has trained."""
        return settle(self.plan, self.runs, self.file, self.states, self.other_code)


@dataclass(frozen=True)
class RunResult:
    """How a run ended. Finished sessions may have failed: their states are in the run directory."""

    outcome: Literal["finished", "detached", "stopped", "unfollowed"]
    """`stopped`: the user stopped the sessions; `unfollowed`: the user left, the jobs continue."""
    started: int = 0
    """Sessions that were started or submitted."""
    problem: bool = False
    """Whether jobs were refused, crashed or disappeared."""


def tell_skipped(selection: Selection, observer: Observer) -> None:
    """Reports the sessions that are left alone."""
    observer.skipped(selection.running, selection.failed)
    if selection.outdated:
        number = f"{selection.outdated:,} finished session" + (" was" if selection.outdated == 1 else "s were")
        observer.note(f"{number} trained with other code and kept; --redo trains again what other code trained")


def freeze_plan(plan: Plan, runs: Path) -> Path:
    """Saves the plan below the run directory: jobs receive a file and session ids, never a live object."""
    folder = runs / PLANS
    with writing(runs):
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
    plan.save(path)
    return path
