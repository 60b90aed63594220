"""The outcome of a trial: its score with n and an interval, and what it takes to check and repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rldsl.maths.scores import total_reward_ma
from rldsl.maths.statistics import Interval, bootstrap_interval, interquartile_mean
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan, Row
from rldsl.spec.base import SCHEMA
from rldsl.store.layout import provenance_name
from rldsl.store.metrics import read_metrics
from rldsl.store.provenance import read_provenance
from rldsl.store.session_dir import SessionDir

METRIC = "total_reward_ma"
CURVE_POINTS = 100
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ale-py")


@dataclass(frozen=True)
class Run:
    """A finished session: its curve, and how long it took."""

    seed: int
    frame: np.ndarray
    mean_return: np.ndarray
    seconds: float
    origin: dict[str, Any]

    @property
    def score(self) -> float:
        """The mean of the last 100 log points, each the mean of the last 100 training episodes."""
        return total_reward_ma(self.mean_return)


@dataclass(frozen=True)
class Outcome:
    """The finished sessions of one trial."""

    row: Row
    runs: Sequence[Run]

    @property
    def scores(self) -> np.ndarray:
        return np.array([run.score for run in self.runs])

    @property
    def interval(self) -> Interval:
        """95%, by bootstrap over the seeds, of the interquartile mean."""
        return bootstrap_interval([self.scores], np.random.default_rng(0))

    def data(self) -> dict[str, Any]:
        """All of it in a compact form."""
        trial = self.row.trial
        return {
            "schema": SCHEMA,
            "experiment": self.row.experiment,
            "trial": self.row.id,
            "env": trial.env.label,
            "agent": trial.agent.kind,
            "frames": trial.budget.frames,
            "metric": METRIC,
            "n": len(self.runs),
            "score": float(self.scores.mean()),
            "interquartile_mean": float(interquartile_mean(self.scores)),
            "interval_95": [float(self.interval.low), float(self.interval.high)] if len(self.scores) > 1 else None,
            "target": self.row.target.score if self.row.target else None,
            "seeds": {str(run.seed): {"score": run.score, "seconds": round(run.seconds, 1)} for run in self.runs},
            "curve": self._curve(),
            "code": _code(self.runs[0].origin),
            "spec": trial.data(),
        }

    def _curve(self) -> dict[str, list[float]]:
        """Mean, lowest and highest return over the seeds, at a hundred frames."""
        length = min(len(run.frame) for run in self.runs)
        chosen = np.unique(np.linspace(0, length - 1, CURVE_POINTS).astype(int))
        returns = np.stack([run.mean_return[chosen] for run in self.runs])
        rows = {"mean": returns.mean(0), "low": returns.min(0), "high": returns.max(0)}
        figures = {name: [round(float(value), 2) for value in row] for name, row in rows.items()}
        return {"frame": self.runs[0].frame[chosen].astype(int).tolist(), **figures}


def outcomes(plan: Plan, existing: Existing) -> list[Outcome]:
    """The outcome of every trial of a plan that has a finished session."""
    found = [Outcome(row, _runs(existing.planned(row), existing.runs)) for row in plan.rows()]
    return [outcome for outcome in found if outcome.runs]


def _runs(planned_sessions: Sequence[PlannedSession], runs: Path) -> list[Run]:
    return [_run(one.seed, SessionDir(runs / one.directory)) for one in planned_sessions if one.state == "done"]


def _run(seed: int, directory: SessionDir) -> Run:
    metrics = read_metrics(directory.metrics)
    returns = np.array([np.nan if one is None else one for one in metrics["episode_return"]], dtype=float)
    frames = np.array(metrics["frame"], dtype=float)
    known = ~np.isnan(returns)
    seconds = float(metrics["seconds"][-1] or 0.0)
    origin = read_provenance(directory.path / provenance_name(1))
    return Run(seed, frames[known], returns[known], seconds, origin)


def _code(origin: dict[str, Any]) -> dict[str, Any]:
    packages = origin.get("packages", {})
    versions = {name: packages[name] for name in PACKAGES if name in packages}
    code = origin.get("code") or {}
    return {
        "sha": code.get("sha"),
        "dirty": code.get("dirty"),
        "python": origin.get("python"),
        "packages": versions,
        "cpu": (origin.get("hardware") or {}).get("cpu"),
    }
