"""A session again, by what its directory says alone: the job that goes on with it, the command that repeats it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rldsl.launch.jobs import Job, JobMaker
from rldsl.plan.plan import Part
from rldsl.spec.budget import Target
from rldsl.spec.session import Override
from rldsl.store.errors import StoreError, writing
from rldsl.store.plan_file import save_plan
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

REPEATED = "repeated"
"""The run directory that a repetition goes to: in its own it would be done already."""


def resume_job(directory: SessionDir, runs: Path) -> Job:
    """The job that goes on with one session."""
    origin = newest_provenance(directory.path)
    plan = session_plan(directory, runs)
    maker = JobMaker(plan.resolve(), runs.resolve(), _experiment_file(origin), origin.get("command") or [])
    return maker.job_of([directory.id], directory.path)


def repeat_command(directory: SessionDir, runs: Path) -> str:
    """A shell line that trains the same session once more, in a run directory of its own."""
    origin = newest_provenance(directory.path)
    plan = session_plan(directory, runs)
    where = shlex.join(["cd", str(origin.get("cwd") or Path.cwd())])
    file = _experiment_file(origin)
    what = ["rldsl", "train", str(file or "FILE.py"), "--plan", str(plan.resolve()), "--runs", REPEATED]
    return f"{where} && {shlex.join(what)}"


def session_plan(directory: SessionDir, runs: Path) -> Path:
    """A plan of this one session, made of its own record and kept beside the other plans."""
    record = directory.read_session()
    path = runs / ".plans" / f"{directory.id}.json"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_plan(path, _header(record), [_trial(record)])
    except KeyError as error:
        raise StoreError(f"{directory.session} does not say its {error}") from error
    return path


def _experiment_file(origin: dict[str, Any]) -> Path | None:
    """The file that the command behind the session named, where it is still there."""
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
    return {"schema": record["schema"], "experiments": [part.data()]}


def _trial(record: dict[str, Any]) -> dict[str, Any]:
    named = {"experiment": record["experiment"], "id": record["trial_id"], "differs": {}}
    return {**named, "seeds": [record["seed"]], "spec": record["trial"]}
