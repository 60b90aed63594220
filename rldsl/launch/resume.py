"""A session by its directory alone: the job that resumes it, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rldsl.launch.jobs import Job, JobMaker
from rldsl.spec.base import SCHEMA
from rldsl.spec.budget import Target
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Override, Session, check_record
from rldsl.store.errors import StoreError, writing
from rldsl.store.plan_file import PLANS, plan_header, save_plan
from rldsl.store.plan_parts import Part
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

WITH_FILE = "; `python FILE resume` resumes it with its experiment file"
REPEATED = "repeated"
"""The run directory of a repetition: in its own run directory the session is done already."""


def resume_job(directory: SessionDir, runs: Path, file: Path | None = None) -> Job:
    """The job that resumes a session.

    `file` is the experiment file, for classes that it defines. It is given by the user: a record may name any path, so
    no path in a record is imported.
    """
    command = newest_provenance(directory.path).get("command")
    plan = session_plan(directory, runs, file)
    origin = [str(word) for word in command] if isinstance(command, list) else []
    maker = JobMaker(plan.resolve(), runs.resolve(), file and file.resolve(), origin)
    return maker.job_of([directory.id], directory.path)


def repeat_command(directory: SessionDir, runs: Path, file: Path | None = None) -> str:
    """A shell command that trains the same session again, in another run directory; `file` as for `resume_job`."""
    plan = session_plan(directory, runs, file)
    words = ["python", "-m", "rldsl.train", str(plan.resolve()), "--runs", REPEATED, "--session", directory.id]
    return shlex.join([*words, *(["--file", str(file.resolve())] if file else [])])


def session_plan(directory: SessionDir, runs: Path, file: Path | None = None) -> Path:
    """Writes a plan of this one session, from its `session.json`; refuses a session of another schema version."""
    record = directory.read_session()
    if record.get("schema", SCHEMA) != SCHEMA:
        raise StoreError(f"{directory.id} has schema {record.get('schema')}, this version has {SCHEMA}")
    _check(record, directory, file)
    path = runs / PLANS / f"{directory.id}.json"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_plan(path, _header(record), [_trial(record)])
    except (KeyError, SpecError) as error:
        raise StoreError(f"{directory.session} cannot be used: {error}") from error
    return path


def _check(record: Mapping[str, Any], directory: SessionDir, file: Path | None) -> None:
    """Refuses a record whose parts do not belong together, and without a file, classes that only a file defines."""
    try:
        if file is not None:
            check_record(record, directory.path)
            return
        lacks = Session.from_record(record, directory.path).trial.env.missing()
    except SpecError as error:
        raise StoreError(f"{directory.id} cannot be resumed from here: {error}{WITH_FILE}") from error
    if lacks:
        raise StoreError(f"{directory.id} cannot be resumed from here: {lacks}{WITH_FILE}")


def _header(record: dict[str, Any]) -> dict[str, Any]:
    target = record.get("target")
    part = Part(
        name=record["experiment"],
        trials=1,
        seeds=1,
        frames=record["frames"],
        search=None,
        adaptive=False,
        target=Target.parse(target) if target else None,
        overrides=tuple(Override.parse(one) for one in record.get("overrides", ())),
        work=None,
    )
    return plan_header([part])


def _trial(record: dict[str, Any]) -> dict[str, Any]:
    named = {"experiment": record["experiment"], "id": record["trial_id"], "differs": {}}
    return {**named, "seeds": [record["seed"]], "spec": record["trial"]}
