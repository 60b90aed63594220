"""The backlog: sessions that wait because their queue limits how many jobs one may submit.

`runs/.jobs/backlog.json` has their ids and the reason. `train` and `resume` submit as many as the queue accepts;
while one of them follows its sessions, it submits more as jobs end.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

from rldsl.launch.job_records import JOBS
from rldsl.store.files import replace_json

BACKLOG_FILE = "backlog.json"


def read_backlog(runs: Path) -> dict[str, str]:
    """The reason why each session of the backlog waits."""
    try:
        data = json.loads((runs / JOBS / BACKLOG_FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return {str(id): str(reason) for id, reason in data.items()}


def update_backlog(runs: Path, waiting: Iterable[str], reason: str, accepted: Collection[str] = ()) -> None:
    """Adds sessions, and removes those that were accepted or stopped. The caller holds the submission lock."""
    before = read_backlog(runs)
    after = {id: why for id, why in before.items() if id not in accepted} | dict.fromkeys(waiting, reason)
    if after != before:
        replace_json(runs / JOBS / BACKLOG_FILE, after)


def drop_backlog(runs: Path, sessions: Collection[str]) -> int:
    """Removes sessions that were stopped; returns how many there were. The caller holds the submission lock."""
    dropped = read_backlog(runs).keys() & set(sessions)
    update_backlog(runs, (), "", dropped)
    return len(dropped)
