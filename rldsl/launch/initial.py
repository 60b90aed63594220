"""The weights that sessions start from: checked, and downloaded from the Hub, before anything is launched."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from rldsl.plan.after import Awaited
from rldsl.plan.existing import PlannedSession
from rldsl.spec.init_from import InitFrom
from rldsl.store.errors import SessionNotFound, StoreError, writing
from rldsl.store.initial import downloaded_path, initial_session


def fetch_initial(sessions: Iterable[PlannedSession], runs: Path) -> None:
    """Makes sure that the run directory has the weights that these sessions start from."""
    for planned in sessions:
        init = planned.row.trial.init_from
        if init is None or planned.state != "new":
            continue
        if init.on_hub:
            _download(init, runs)
        else:
            _check(init, planned.seed, runs)


def missing_initial(sessions: Iterable[PlannedSession], runs: Path, waits: Mapping[str, Awaited]) -> dict[str, str]:
    """By experiment, why its sessions could not start now: the first whose weights the run directory does not have.

    `waits` are the sessions that an experiment comes after: they are still to train the weights.
    """
    missing: dict[str, str] = {}
    for planned in sessions:
        name, init = planned.row.experiment, planned.row.trial.init_from
        if init is None or init.on_hub or planned.state != "new" or name in missing:
            continue
        if name in waits and init.session(planned.seed) in {one.id for one in waits[name].needs}:
            continue
        try:
            _check(init, planned.seed, runs)
        except StoreError as error:
            missing[name] = str(error)
    return missing


def _check(init: InitFrom, seed: int, runs: Path) -> None:
    if not initial_session(runs, init, seed).checkpoints.is_dir():
        raise StoreError(f"init_from: {init.session(seed)} has no checkpoint yet")


def _download(init: InitFrom, runs: Path) -> None:
    from rldsl.hub.agent import download_agent

    try:
        initial_session(runs, init, 0)
    except SessionNotFound:
        source = download_agent(init.source)
        goal = downloaded_path(runs, init)
        with writing(goal):
            half = goal.with_name(f"{goal.name}.tmp")
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(source.path, half)
            half.rename(goal)
