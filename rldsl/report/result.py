"""The compact result of a trial: settings, provenance, and the learning curve and metrics of each seed.

`results/FAMILY/EXPERIMENT.json` holds one. It is small enough to be committed, and complete enough to be audited.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rldsl.maths.scores import WINDOW
from rldsl.report.learning_curve import Curve, JoinedCurve, join
from rldsl.spec.base import SCHEMA
from rldsl.spec.experiment import Trial
from rldsl.spec.migrate import migrate_trial
from rldsl.store.errors import StoreError, writing
from rldsl.store.files import replace_text

FORMAT = "rldsl.result"
METRIC = "episode_return_ma"
"""The score: the mean over seeds of its last value."""
MOST_POINTS = 1000
"""Points of a stored curve; the last 100, which the score is the mean of, are always among them."""
DIGITS = 7
"""Significant digits of a stored curve."""

Facts = dict[str, Any]


@dataclass(frozen=True)
class SessionResult:
    """One seed of a trial."""

    seed: int
    score: float | None
    """`episode_return_ma` at the last log point; None if no episode ended."""
    frame: int
    """The last log point."""
    seconds: float
    curve: Curve | None
    """`episode_return` at log points; None if it was not kept."""
    evaluation: Curve | None = None
    """`eval_return` of each evaluation; None without evaluation."""
    provenance: Sequence[Facts] | None = None
    """Code, packages and processor of each process that worked on the session; None if not recorded."""
    compute: Sequence[Facts] | None = None
    """Device and kernels of each process; None if not recorded."""
    state: str = "done"
    damage: tuple[str, ...] = ()
    """What is wrong with its files."""
    fallbacks: tuple[str, ...] = ()
    """What damaged files made a resumed process do, such as using an older checkpoint."""

    @property
    def evaluation_score(self) -> float | None:
        """The mean return of the last evaluation."""
        return float(self.evaluation.value[-1]) if self.evaluation and self.evaluation.value.size else None

    def data(self) -> Facts:
        """The session as JSON."""
        return {
            "seed": self.seed,
            "score": self.score,
            "evaluation_score": self.evaluation_score,
            "frame": self.frame,
            "seconds": round(self.seconds, 1),
            "provenance": None if self.provenance is None else list(self.provenance),
            "compute": None if self.compute is None else list(self.compute),
            "curve": _curve_data(self.curve, "episode_return"),
            "evaluation": _curve_data(self.evaluation, "eval_return"),
            **({"fallbacks": list(self.fallbacks)} if self.fallbacks else {}),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SessionResult:
        """The inverse of `data`."""
        return cls(
            seed=data["seed"],
            score=data["score"],
            frame=data["frame"],
            seconds=data["seconds"],
            curve=_curve_of(data["curve"], "episode_return"),
            evaluation=_curve_of(data["evaluation"], "eval_return"),
            provenance=data["provenance"],
            compute=data["compute"],
            fallbacks=tuple(data.get("fallbacks", ())),
        )


@dataclass(frozen=True)
class Result:
    """The sessions of one trial."""

    experiment: str
    trial: str
    """The id of the trial."""
    spec: Facts
    """The complete settings."""
    target: float | None
    sessions: Sequence[SessionResult]
    schema: int = SCHEMA
    metric: str = METRIC
    joined: JoinedCurve | None = None
    """Mean, lowest and highest return over seeds, where the curve of each seed was not kept."""
    path: Path | None = field(default=None, compare=False)
    """The file that it was read from."""
    damage: tuple[str, ...] = field(default=(), compare=False)
    """What is wrong with that file."""

    @property
    def scores(self) -> list[float]:
        """The score of each seed; nan for a seed without one."""
        return [math.nan if one.score is None else one.score for one in self.sessions]

    @property
    def score(self) -> float:
        """The mean over seeds; nan if any seed has none."""
        return float(np.mean(self.scores)) if self.sessions else math.nan

    @property
    def evaluation_scores(self) -> list[float] | None:
        """The evaluation score of each seed; None unless all have one."""
        scores = [one.evaluation_score for one in self.sessions]
        known = [score for score in scores if score is not None]
        return known if known and len(known) == len(scores) else None

    @property
    def frames_per_second(self) -> float | None:
        """The median over seeds of the frames per second of a session, over all its processes."""
        speeds = [one.frame / one.seconds for one in self.sessions if one.seconds > 0]
        return float(np.median(speeds)) if speeds else None

    @property
    def curve(self) -> JoinedCurve | None:
        """The learning curves of all seeds, joined by frame; None if there is none."""
        curves = [one.curve for one in self.sessions if one.curve is not None]
        joined = join(curves) if curves else self.joined
        return joined if joined is not None and joined.frame.size else None

    def parsed_spec(self) -> Trial:
        """The settings, with the current names of fields; a `SpecError` if they are not valid any more."""
        return Trial.parse(migrate_trial(self.spec, self.schema), root=self.experiment)

    def data(self) -> Facts:
        """The result as JSON, with a digest of everything else."""
        data = {
            "format": FORMAT,
            "schema": self.schema,
            "experiment": self.experiment,
            "trial": self.trial,
            "metric": self.metric,
            "target": self.target,
            "spec": self.spec,
            "joined_curve": _joined_data(self.joined),
            "sessions": [one.data() for one in self.sessions],
        }
        return {**data, "digest": digest(data)}


def digest(data: Mapping[str, Any]) -> str:
    """The SHA-256 of a result without its own digest."""
    rest = {name: value for name, value in data.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def file_name(experiment: str) -> str:
    """`cartpole/ppo` as `cartpole-ppo.json`."""
    return f"{experiment.replace('/', '-')}.json"


def write_result(folder: Path, result: Result) -> Path:
    """Writes the file of a result; numbers of a curve are in one line."""
    path = folder / file_name(result.experiment)
    text = re.sub(r"\[[^][{}\"]*\]", lambda list_: re.sub(r"\s+", "", list_[0]), json.dumps(result.data(), indent=1))
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
    replace_text(path, f"{text}\n")
    return path


def read_result(path: Path) -> Result:
    """The result in a file."""
    try:
        data = json.loads(path.read_bytes())
        if data.get("format") != FORMAT:
            raise StoreError(f"{path} is not a result: `rldsl results add` writes one")
        return Result(
            experiment=data["experiment"],
            trial=data["trial"],
            spec=data["spec"],
            target=data["target"],
            sessions=[SessionResult.from_data(one) for one in data["sessions"]],
            schema=data["schema"],
            metric=data["metric"],
            joined=_joined_of(data["joined_curve"]),
            path=path,
            damage=() if digest(data) == data["digest"] else ("the file was changed: its digest does not fit it",),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"the result {path} is damaged: {type(error).__name__} {error}") from error


def result_files(folder: Path) -> Iterator[Path]:
    """The files `FAMILY/EXPERIMENT.json` of a results folder."""
    yield from sorted(path for path in folder.glob("*/*.json") if not path.parent.name.startswith("."))


def read_results(folder: Path) -> list[Result]:
    """Every result of a results folder."""
    return [read_result(path) for path in result_files(folder)]


def thinned(curve: Curve, most: int = MOST_POINTS, keep_last: int = WINDOW) -> Curve:
    """A curve of at most `most` points: the last ones, and earlier ones at regular distances."""
    points = curve.frame.size
    if points <= most:
        return curve
    earlier = np.unique(np.linspace(0, points - keep_last - 1, most - keep_last).astype(int))
    kept = np.concatenate([earlier, np.arange(points - keep_last, points)])
    return Curve(curve.frame[kept], curve.value[kept])


def _curve_data(curve: Curve | None, name: str) -> Facts | None:
    return None if curve is None else {"frame": curve.frame.astype(int).tolist(), name: _rounded(curve.value)}


def _curve_of(data: Mapping[str, Any] | None, name: str) -> Curve | None:
    return None if data is None else Curve.of(data["frame"], data[name])


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _joined_data(curve: JoinedCurve | None) -> Facts | None:
    if curve is None:
        return None
    columns = {name: _rounded(getattr(curve, name)) for name in ("mean", "low", "high")}
    return {"frame": curve.frame.astype(int).tolist(), **columns, "n": curve.n.tolist()}


def _joined_of(data: Mapping[str, Any] | None) -> JoinedCurve | None:
    if data is None:
        return None
    frame, mean, low, high = (np.asarray(data[name], dtype=np.float64) for name in ("frame", "mean", "low", "high"))
    return JoinedCurve(frame, mean, low, high, np.asarray(data["n"], dtype=np.int64), np.empty((0, frame.size)))
