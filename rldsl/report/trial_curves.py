"""The log points of trials, from run directories and committed results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.learning_curve import JoinedCurve
from rldsl.report.result import Result, SessionResult
from rldsl.spec.base import SCHEMA
from rldsl.spec.experiment import Trial
from rldsl.spec.migrate import migrate_trial
from rldsl.store.errors import StoreError
from rldsl.store.integrity import metrics_damage
from rldsl.store.metrics import read_metrics
from rldsl.store.session_dir import SessionDir


@dataclass(frozen=True)
class SeedCurves:
    """One seed: where its log points are read from, when they are needed."""

    seed: int
    read: Callable[[], Mapping[str, Sequence[Any]]]

    @cached_property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        return self.read()


@dataclass(frozen=True)
class TrialCurves:
    """The sessions of one trial."""

    experiment: str
    trial: str
    """The id of the trial."""
    env: str
    spec: Mapping[str, Any]
    target: float | None
    seeds: Sequence[SeedCurves]
    joined: JoinedCurve | None = None
    """`episode_return` of a result that has no curves of single seeds."""
    settings: str = ""
    """The settings in which it differs from the other trials of its experiment."""
    schema: int = SCHEMA

    def parsed(self) -> Trial:
        """The settings, with the current names of fields; a `SpecError` if they are not valid any more."""
        return Trial.parse(migrate_trial(self.spec, self.schema), root=self.experiment)


Skipped = Callable[[str], None]
"""Gets a sentence for each session that is left out because a file of it is damaged."""


def of_sessions(sessions: Iterable[SessionDir], skipped: Skipped) -> list[TrialCurves]:
    """The trials that these sessions belong to, in the order in which they come."""
    trials: dict[str, TrialCurves] = {}
    for directory in sessions:
        try:
            record = directory.read_session()
        except StoreError as error:
            skipped(f"left out: {error}")
            continue
        id, target = str(directory.trial), record.get("target")
        seeds = [*(trials[id].seeds if id in trials else ()), _seed(directory, skipped)]
        trials[id] = TrialCurves(
            experiment=str(record.get("experiment", "?")),
            trial=id,
            env=str(record.get("env", "?")),
            spec=record.get("trial") or {},
            target=target.get("score") if isinstance(target, dict) else None,
            seeds=seeds,
            schema=record.get("schema") or SCHEMA,
        )
    return list(trials.values())


def of_plan(plan: Plan, existing: Existing, skipped: Skipped, states: Sequence[str] | None = None) -> list[TrialCurves]:
    """The trials of a plan that have sessions on disk, in these states (None: in any state)."""
    trials: dict[tuple[str, str], TrialCurves] = {}
    for row in plan.rows():
        started = [one for one in existing.planned(row) if one.state != "new" and (not states or one.state in states)]
        if started and (row.experiment, row.id) not in trials:
            trials[row.experiment, row.id] = TrialCurves(
                experiment=row.experiment,
                trial=row.id,
                env=row.trial.env.label,
                spec=row.trial.data(),
                target=row.target.score if row.target else None,
                seeds=[_seed(SessionDir(existing.runs / one.directory), skipped) for one in started],
            )
    return list(trials.values())


def of_results(results: Iterable[Result]) -> list[TrialCurves]:
    """The trials of committed results: `episode_return` and, where there was evaluation, `eval_return`."""
    return [
        TrialCurves(
            experiment=result.experiment,
            trial=result.trial,
            env=_env_label(result),
            spec=result.spec,
            target=result.target,
            seeds=[SeedCurves(one.seed, partial(_result_columns, one)) for one in result.sessions],
            joined=result.joined,
            schema=result.schema,
        )
        for result in results
    ]


def _env_label(result: Result) -> str:
    env = result.spec.get("env") or {}
    return str(env.get("id", env.get("kind", "?")))


def _result_columns(session: SessionResult) -> dict[str, Sequence[Any]]:
    """The curves of a session as columns; evaluations are between log points, so that each fills its own rows."""
    curves = {"episode_return": session.curve, "eval_return": session.evaluation}
    known = {name: curve for name, curve in curves.items() if curve is not None}
    frames = np.concatenate([np.empty(0), *(curve.frame for curve in known.values())])
    columns: dict[str, Sequence[Any]] = {"frame": frames.tolist()}
    start = 0
    for name, curve in known.items():
        values = np.full(frames.size, np.nan)
        values[start : start + curve.frame.size] = curve.value
        columns[name], start = values.tolist(), start + curve.frame.size
    return columns


def _seed(directory: SessionDir, skipped: Skipped) -> SeedCurves:
    def read() -> Mapping[str, Sequence[Any]]:
        if damage := metrics_damage(directory.metrics, directory.read_state()):
            skipped(f"left out: {directory.path}: {damage}")
            return {}
        return read_metrics(directory.metrics)

    return SeedCurves(directory.seed or 0, read)
