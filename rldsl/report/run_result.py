"""The result of a trial from the directories of its sessions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rldsl.maths.scores import total_reward_ma
from rldsl.report.learning_curve import Curve
from rldsl.report.result import Facts, Result, SessionResult, thinned
from rldsl.report.words import count
from rldsl.spec.budget import Evaluation
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.store.errors import StoreError
from rldsl.store.integrity import metrics_damage
from rldsl.store.journal import Garbage, read_journal
from rldsl.store.layout import provenance_name
from rldsl.store.metrics import MetricsReader, Row
from rldsl.store.provenance import read_provenance
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ale-py", "envpool", "box2d", "playground", "jax")
"""The packages whose versions a result records: those that scores may depend on."""
COMPUTE = ("device", "compiled", "kernels")
"""What the journal says about how a process computed."""
MOST_EVALUATIONS = 300


def result_of(sessions: Sequence[SessionDir]) -> Result:
    """The result of the sessions of one trial, with the settings that the first readable one of them recorded."""
    record, recorded = _first_record(sessions)
    return Result(
        experiment=recorded.experiment,
        trial=str(sessions[0].trial),
        spec=record["trial"],
        schema=record.get("schema") or 0,
        target=recorded.target,
        sessions=[session_result(one) for one in sessions],
    )


def _first_record(sessions: Sequence[SessionDir]) -> tuple[dict[str, Any], SessionState]:
    """The first record that can be read, and what tables show of it; raises `StoreError` if there is none."""
    problems = []
    for one in sessions:
        recorded = one.recorded()
        if recorded.damage is None and "trial" in (record := one.read_session()):
            return record, recorded
        problems.append(recorded.damage or f"{one.session} has no trial")
    raise StoreError(problems[0])


def trial_results(sessions: Iterable[SessionDir], skipped: Callable[[str], None]) -> Iterator[Result]:
    """A result for each trial of these sessions; `skipped` gets a sentence for each trial that cannot be read."""
    trials: dict[str, list[SessionDir]] = {}
    for one in sessions:
        trials.setdefault(str(one.trial), []).append(one)
    for directories in trials.values():
        try:
            yield result_of(directories)
        except StoreError as error:
            skipped(f"{directories[0].path.parent} is left out: {error}")


def session_result(directory: SessionDir) -> SessionResult:
    """One seed: what its files say, and what is wrong with them."""
    state = directory.read_state()
    reader = MetricsReader(directory.metrics)
    rows = reader.read_new()
    curve = Curve.of(*_columns(rows, "episode_return"))
    score = total_reward_ma(curve.value)
    return SessionResult(
        seed=directory.seed or 0,
        score=None if math.isnan(score) else score,
        frame=int(rows[-1]["frame"] or 0) if rows else 0,
        seconds=float(rows[-1].get("seconds") or 0.0) if rows else 0.0,
        curve=thinned(curve),
        evaluation=_evaluation(directory, rows),
        provenance=_provenance(directory.path),
        compute=_compute(directory),
        state=state.state,
        damage=tuple(_damage(directory, rows, reader.malformed, state)),
        fallbacks=tuple(dict.fromkeys(state.fallbacks)),
    )


def _columns(rows: Iterable[Row], name: str) -> tuple[list[Any], list[Any]]:
    pairs = [(row["frame"], row.get(name)) for row in rows]
    return [frame for frame, _ in pairs], [value for _, value in pairs]


def _evaluation(directory: SessionDir, rows: Sequence[Row]) -> Curve | None:
    """A point for each evaluation: the log points in between repeat the latest result."""
    try:
        every = Evaluation.parse(directory.read_session()["trial"]["evaluation"]).every
    except (StoreError, SpecError, KeyError, TypeError):
        return None
    curve = Curve.of(*_columns(rows, "eval_return"))
    number = curve.frame // every
    new = np.diff(number, prepend=-1) > 0
    return thinned(Curve(curve.frame[new], curve.value[new]), MOST_EVALUATIONS, 1)


def was_committed(directory: SessionDir) -> bool:
    """Whether all code of a session was committed to a git repository, as `report` demands."""
    facts = _provenance(directory.path)
    return bool(facts) and all(one.get("sha") is not None and one.get("dirty") is False for one in facts)


def _provenance(path: Path) -> list[Facts]:
    """What each process recorded, without hosts, paths and commands; processes with the same facts once."""
    found: list[Facts] = []
    number = 1
    while (file := path / provenance_name(number)).exists():
        facts = _public(read_provenance(file))
        if facts not in found:
            found.append(facts)
        number += 1
    return found


def _public(facts: Mapping[str, Any]) -> Facts:
    code, hardware, packages = (facts.get(name) or {} for name in ("code", "hardware", "packages"))
    return {
        "sha": code.get("sha"),
        **({"code": code["digest"]} if code.get("digest") else {}),
        "dirty": code.get("dirty"),
        "python": facts.get("python"),
        "packages": {name: packages[name] for name in PACKAGES if name in packages},
        "cpu": hardware.get("cpu"),
        "gpus": hardware.get("gpus") or [],
    }


def _compute(directory: SessionDir) -> list[Facts]:
    """Device and kernels of each process, as they were when it ended; the same facts once."""
    processes: list[Facts] = []
    for event in read_journal(directory.journal.path):
        if isinstance(event, Garbage):
            continue
        facts = {name: event[name] for name in COMPUTE if name in event}
        if event["event"] == "started":
            processes.append(facts)
        elif event["event"] == "compute" and processes:
            processes[-1] = processes[-1] | facts
    return [facts for index, facts in enumerate(processes) if facts not in processes[:index]]


def _damage(directory: SessionDir, rows: Sequence[Row], malformed: int, state: SessionState) -> Iterable[str]:
    seed = directory.seed
    if state.unreadable:
        yield f"the journal of seed {seed} has {count(state.unreadable, 'line')} that cannot be read"
    if changed := metrics_damage(directory.metrics, state):
        yield f"seed {seed}: {changed}"
    if malformed:
        yield f"metrics.csv of seed {seed} has {count(malformed, 'line')} that cannot be read"
    frames, returns = _columns(rows, "episode_return")
    if any(b <= a for a, b in pairwise(frames)):
        yield f"the frames in metrics.csv of seed {seed} do not increase"
    known = [value for value in returns if value is not None]
    if not all(map(math.isfinite, known)) or None in returns[len(returns) - len(known) :]:
        yield f"metrics.csv of seed {seed} has log points without a finite return after its first episode"
    if not (directory.path / provenance_name(1)).exists():
        yield f"seed {seed} has no provenance.json"
    try:
        Session.from_record(directory.read_session(), directory.path)
    except (StoreError, SpecError) as error:
        yield f"seed {seed} cannot be used: {error}"
