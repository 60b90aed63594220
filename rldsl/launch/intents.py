"""Intents: what a submitter is about to submit, written down before the queue is asked.

`runs/.jobs/<submission>/intent.json` has everything that the records of the jobs need except their ids. It is replaced
by `settled.json` if the submitter could not record them itself: the jobs that were found in the queue, by position.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen
from pydantic import BaseModel

from rldsl.launch.job_records import JOBS, JobRecord
from rldsl.spec.json_text import parse_object
from rldsl.spec.launcher import Launcher
from rldsl.store.files import replace_text

INTENT_FILE = "intent.json"
SETTLED_FILE = "settled.json"
LATE_SECONDS = 3600.0
"""How long after a submission was settled jobs of it may still arrive in the queue; they are cancelled."""


@dataclass(frozen=True)
class Intent:
    """A submission as it was meant: the records of its jobs, in order, without their ids."""

    folder: Path
    """The directory of the submission; its name is unique."""
    jobs: tuple[JobRecord, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def launcher(self) -> Launcher:
        return self.jobs[0].spec()

    def write(self) -> None:
        """Returns once the intent is on the disk."""
        first = self.jobs[0]
        jobs = [[job.sessions, job.directories, job.experiment, job.until] for job in self.jobs]
        shared = {"backend": first.backend, "launcher": dict(first.launcher), "search": first.search}
        replace_text(self.folder / INTENT_FILE, json.dumps({**shared, "jobs": jobs}))

    def close(self) -> None:
        """All jobs of the submission that the queue has are recorded."""
        (self.folder / INTENT_FILE).unlink(missing_ok=True)

    def settle(self, found: Mapping[int, str]) -> None:
        """Gives up all jobs but those that were found; if one of them arrives later, it must not train."""
        ids = {str(position): id for position, id in found.items()}
        jobs = json.loads((self.folder / INTENT_FILE).read_bytes())
        replace_text(self.folder / SETTLED_FILE, json.dumps({**jobs, "found": ids, "time": time.time()}))
        self.close()


def open_intents(runs: Path) -> list[Intent]:
    """The intents of submitters that are at work, or were killed, oldest first."""
    return _read_all(runs, INTENT_FILE)


def late_intents(runs: Path) -> list[Intent]:
    """Intents that were settled so recently that jobs of them may still arrive; each without those that were found."""
    recent = []
    for intent in _read_all(runs, SETTLED_FILE):
        settled = _read_content(intent.folder / SETTLED_FILE)
        if settled and time.time() - settled.time < LATE_SECONDS and len(settled.found) < len(intent.jobs):
            recent.append(intent)
    return recent


def is_wanted(folder: Path, position: int) -> bool:
    """Whether a job of a submission may train: not if it arrived after it was given up."""
    if not (folder / SETTLED_FILE).exists():
        return True
    settled = _read_content(folder / SETTLED_FILE)
    return settled is not None and str(position) in settled.found


def _read_all(runs: Path, name: str) -> list[Intent]:
    return [intent for file in sorted((runs / JOBS).glob(f"*/{name}")) if (intent := _read(file)) is not None]


def _read(file: Path) -> Intent | None:
    """The intent in a file; None if another process has settled it in the meantime, or if it is damaged."""
    data = _read_content(file)
    if data is None:
        return None
    blank = JobRecord(data.backend, "", (), file.parent.name, data.launcher, search=data.search)
    jobs = (
        replace(blank, sessions=ids, directories=paths, experiment=name, until=until)
        for ids, paths, name, until in data.jobs
    )
    return Intent(file.parent, tuple(jobs))


class _Content(BaseModel, frozen=True):
    """An intent as it is in its file, and how it was settled."""

    backend: str
    launcher: dict[str, Any]
    search: str
    jobs: Annotated[list[tuple[tuple[str, ...], tuple[str, ...], str, int | None]], MinLen(1)]
    found: dict[str, str] = {}
    time: float = 0.0


def _read_content(file: Path) -> _Content | None:
    """The content of a file; None if it is gone or damaged."""
    try:
        return _Content.model_validate(parse_object(file.read_bytes()))
    except (OSError, ValueError):
        return None
