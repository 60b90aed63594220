"""Finished sessions with given learning curves, written with the real writers of the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rldsl import PPO, Classic, experiment
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from rldsl.report.outcome import Outcome, outcomes
from rldsl.spec.gin_text import session_gin
from rldsl.store.metrics import MetricsWriter
from rldsl.store.session_dir import SessionDir

Points = Sequence[tuple[int, float | None]]
"""Frames and returns; None before the first episode has ended."""
COLUMNS = ("frame", "seconds", "episode_return")


def cartpole_plan(seeds: int) -> Plan:
    builder = experiment("cartpole").env(Classic("CartPole-v1")).agent(PPO()).frames(1e4).seeds(seeds).target(450)
    return make_plan([Overridden(builder.build())])


def finish(runs: Path, plan: Plan, curves: Sequence[Points]) -> None:
    """Writes a finished session for each curve, seed by seed."""
    (row,) = plan.rows()
    for session, points in zip(row.sessions(), curves, strict=False):
        directory = SessionDir.create(runs, session.directory, session.record(), session_gin(session))
        writer = MetricsWriter(directory.metrics, COLUMNS)
        for frame, value in points:
            writer.write({"frame": frame, "seconds": frame / 100, "episode_return": value})
        directory.journal.append("started", frame=0)
        directory.journal.append("done", frame=10_000)


def outcome_of(runs: Path, *curves: Points) -> Outcome:
    """The outcome of an experiment with these curves, one per seed."""
    plan = cartpole_plan(len(curves))
    finish(runs, plan, curves)
    (outcome,) = outcomes(plan, Existing(runs))
    return outcome
