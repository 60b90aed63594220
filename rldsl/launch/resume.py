"""A session by its directory alone: the job that resumes it, and the command that repeats it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rldsl.launch.jobs import Job, JobMaker
from rldsl.spec.base import SCHEMA
from rldsl.spec.budget import Target
from rldsl.spec.session import Override
from rldsl.store.errors import StoreError, writing
from rldsl.store.plan_file import PLANS, Part, plan_header, save_plan
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

REPEATED = "repeated"
"""The run directory of a repetition: in its own run directory the session is done already."""


def resume_job(directory: SessionDir, runs: Path) -> Job:
    """The job that resumes a session."""
    origin = newest_provenance(directory.path)
    plan = session_plan(directory, runs)
    maker = JobMaker(plan.resolve(), runs.resolve(), _experiment_file(origin), origin.get("command") or [])
    return maker.job_of([directory.id], directory.path)


def repeat_command(directory: SessionDir, runs: Path) -> str:
    """A shell command that trains the same session again, in another run directory."""
    origin = newest_provenance(directory.path)
    plan = session_plan(directory, runs)
    where = shlex.join(["cd", str(origin.get("cwd") or Path.cwd())])
    file = _experiment_file(origin)
    what = ["rldsl", "train", str(file or "FILE.py"), "--plan", str(plan.resolve()), "--runs", REPEATED]
    return f"{where} && {shlex.join(what)}"


def session_plan(directory: SessionDir, runs: Path) -> Path:
    """Writes a plan of this one session, from its `session.json`; refuses a session of another schema version."""
    record = directory.read_session()
    if record.get("schema", SCHEMA) != SCHEMA:
        raise StoreError(f"{directory.id} has schema {record.get('schema')}, this version has {SCHEMA}")
    path = runs / PLANS / f"{directory.id}.json"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_plan(path, _header(record), [_trial(record)])
    except KeyError as error:
        raise StoreError(f"{directory.session} has no {error}") from error
    return path


def _experiment_file(origin: dict[str, Any]) -> Path | None:
    """The experiment file in the command that started the session, if it still exists."""
    named = [word for word in origin.get("command") or [] if str(word).endswith(".py")]
    path = Path(origin.get("cwd") or ".", named[0]) if named else None
    return path if path is not None and path.is_file() else None


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
