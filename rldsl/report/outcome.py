"""The outcome of a trial: its score over n seeds, and what is needed to check and repeat it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldsl.maths.scores import total_reward_ma
from rldsl.maths.statistics import Interval, interval_of_mean, iqm
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan, Row
from rldsl.report.learning_curve import Curve, join
from rldsl.spec.base import SCHEMA
from rldsl.store.layout import provenance_name
from rldsl.store.metrics import read_metrics
from rldsl.store.provenance import read_provenance
from rldsl.store.session_dir import SessionDir

Floats = NDArray[np.float64]

METRIC = "total_reward_ma"
CURVE_POINTS = 100
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ale-py")


@dataclass(frozen=True)
class Run:
    """A finished session: its learning curve, how long it took, and its provenance.

    The curve has the log points from the first finished episode on; it is empty if no episode ended.
    """

    seed: int
    frame: Floats
    episode_return: Floats
    seconds: float
    provenance: dict[str, Any]

    @property
    def score(self) -> float:
        """The mean of `episode_return` over the last 100 log points; nan if no episode ended."""
        return total_reward_ma(self.episode_return)


@dataclass(frozen=True)
class Outcome:
    """The finished sessions of one trial."""

    row: Row
    runs: Sequence[Run]

    @property
    def scores(self) -> Floats:
        """The score of each seed."""
        return np.array([run.score for run in self.runs])

    @property
    def interval(self) -> Interval:
        """95% interval of the score."""
        return interval_of_mean(self.scores)

    @property
    def seeds_without_episode(self) -> list[int]:
        """Seeds whose session finished before any episode ended: they have no score, and so the trial has none."""
        return [run.seed for run in self.runs if not run.frame.size]

    def data(self) -> dict[str, Any]:
        """The outcome as JSON; numbers that are not known are None."""
        trial = self.row.trial
        interval = [_known(self.interval.low), _known(self.interval.high)]
        return {
            "schema": SCHEMA,
            "experiment": self.row.experiment,
            "trial": self.row.id,
            "env": trial.env.label,
            "agent": trial.agent.kind,
            "frames": trial.budget.frames,
            "metric": METRIC,
            "n": len(self.runs),
            "score": _known(self.scores.mean()),
            "interquartile_mean": _known(iqm([self.scores])),
            "interval_95": None if None in interval else interval,
            "target": self.row.target.score if self.row.target else None,
            "seeds": {
                str(run.seed): {"score": _known(run.score), "seconds": round(run.seconds, 1)} for run in self.runs
            },
            "curve": curve([run for run in self.runs if run.frame.size]),
            "code": _code(self.runs[0].provenance),
            "spec": trial.data(),
        }


def curve(runs: Sequence[Run]) -> dict[str, list[float]]:
    """Mean, lowest and highest return over seeds, at up to a hundred frames that all seeds cover."""
    joined = join([Curve(run.frame, run.episode_return) for run in runs], max_points=CURVE_POINTS)
    columns = {"mean": joined.mean, "low": joined.low, "high": joined.high}
    rounded = {name: [round(float(value), 2) for value in column] for name, column in columns.items()}
    return {"frame": joined.frame.astype(int).tolist(), **rounded}


def outcomes(plan: Plan, existing: Existing) -> list[Outcome]:
    """The outcome of every trial of a plan that has a finished session."""
    candidates = [Outcome(row, _runs(existing.planned(row), existing.runs)) for row in plan.rows()]
    return [outcome for outcome in candidates if outcome.runs]


def _runs(planned: Sequence[PlannedSession], runs: Path) -> list[Run]:
    return [
        _read_run(session.seed, SessionDir(runs / session.directory)) for session in planned if session.state == "done"
    ]


def _read_run(seed: int, directory: SessionDir) -> Run:
    metrics = read_metrics(directory.metrics)
    returns = np.array(metrics.get("episode_return", []), dtype=np.float64)  # None, before any episode ended, is nan
    frames = np.array(metrics.get("frame", []), dtype=np.float64)
    known = ~np.isnan(returns)
    seconds = float((metrics.get("seconds") or [0.0])[-1] or 0.0)
    provenance = read_provenance(directory.path / provenance_name(1))
    return Run(seed, frames[known], returns[known], seconds, provenance)


def _known(number: Any) -> float | None:
    """A number for JSON, which has no nan."""
    return None if math.isnan(number) else float(number)


def _code(provenance: dict[str, Any]) -> dict[str, Any]:
    packages = provenance.get("packages", {})
    code = provenance.get("code") or {}
    return {
        "sha": code.get("sha"),
        "dirty": code.get("dirty"),
        "python": provenance.get("python"),
        "packages": {name: packages[name] for name in PACKAGES if name in packages},
        "cpu": (provenance.get("hardware") or {}).get("cpu"),
    }
