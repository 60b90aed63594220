"""Finished sessions with given learning curves, written with the real writers of the store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldsl import PPO, Classic, experiment
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from rldsl.report.entry import Entry, entries_of
from rldsl.report.result import Result
from rldsl.report.run_result import result_of
from rldsl.spec.gin_text import session_gin
from rldsl.store.metrics import MetricsWriter
from rldsl.store.session_dir import SessionDir

Points = Sequence[tuple[int, float | None]]
"""Frames and returns; None before the first episode has ended."""
COLUMNS = ("frame", "seconds", "episode_return")
FRAMES, LOG_EVERY = 10_000, 50
PROVENANCE: dict[str, Any] = {
    "code": {"sha": "0123456789abcdef", "dirty": False},
    "python": "3.11.7",
    "packages": {"torch": "2.7.0", "gymnasium": "1.2.0", "unrelated": "1.0"},
    "host": "secret-host",
    "cwd": "/home/someone",
    "hardware": {"cpu": "a processor", "gpus": []},
}
COMPUTE = {"device": "cpu", "compiled": True, "kernels": "torch"}


def cartpole_plan(seeds: int) -> Plan:
    builder = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(PPO()).frames(FRAMES)
    builder = builder.log_every(LOG_EVERY).seeds(seeds).target(450)
    return make_plan([Overridden(builder.build())])


def cartpole_entry(seeds: int) -> Entry:
    (entry,) = entries_of(cartpole_plan(seeds))
    return entry


def rising(high: float = 100.0) -> Points:
    """A log point at every multiple of the interval; the return rises and stays at `high` for the last half."""
    return [(frame, min(high, high * frame / 5_000)) for frame in range(LOG_EVERY, FRAMES + 1, LOG_EVERY)]


def finish(
    runs: Path,
    plan: Plan,
    curves: Sequence[Points],
    provenance: Mapping[str, Any] = PROVENANCE,
    compute: Mapping[str, Any] = COMPUTE,
) -> list[SessionDir]:
    """Writes a finished session for each curve, seed by seed."""
    (row,) = plan.rows()
    directories = []
    for session, points in zip(row.sessions(), curves, strict=False):
        directory = SessionDir.create(runs, session.directory, session.record(), session_gin(session))
        writer = MetricsWriter(directory.metrics, COLUMNS)
        for frame, value in points:
            writer.write({"frame": frame, "seconds": frame / 100, "episode_return": value})
        (directory.path / "provenance.json").write_text(json.dumps(provenance))
        directory.journal.append("started", frame=0, **compute)
        directory.journal.append("done", frame=FRAMES)
        directories.append(directory)
    return directories


def result_of_curves(runs: Path, *curves: Points) -> Result:
    """The result of an experiment with these curves, one per seed."""
    return result_of(finish(runs, cartpole_plan(len(curves)), curves))
