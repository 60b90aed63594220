"""The record of one session: episodes as they end, a log point every so many frames."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rldsl.maths.scores import WINDOW
from rldsl.store.metrics import MetricsWriter
from rldsl.store.session_dir import SessionDir
from rldsl.store.tensorboard import TensorBoardWriter

COLUMNS = ("frame", "seconds", "fps", "episodes", "episode_return", "episode_return_ma", "length")
"""Columns of every log point. `episode_return` is the mean of the last 100 episodes, `episode_return_ma` the mean of
`episode_return` over the last 100 log points."""


class Recorder:
    """Writes one session's log points to its metrics and TensorBoard files."""

    def __init__(self, directory: SessionDir, columns: Sequence[str], earlier_seconds: float) -> None:
        self.metrics = MetricsWriter(directory.metrics, [*COLUMNS, *columns])
        self.events = TensorBoardWriter(directory.tensorboard)
        self.earlier_seconds = earlier_seconds
        self.started = time.monotonic()
        self.episodes = 0
        self.returns: deque[float] = deque(maxlen=WINDOW)
        self.lengths: deque[int] = deque(maxlen=WINDOW)
        self.points: deque[float] = deque(maxlen=WINDOW)
        self.best: float | None = None
        self.improved = False
        self._times: deque[tuple[int, float]] = deque([(0, self.started)], maxlen=WINDOW)

    @property
    def seconds(self) -> float:
        """Seconds of work of all lives so far."""
        return self.earlier_seconds + time.monotonic() - self.started

    def episode(self, total: float, length: int) -> None:
        """An episode ended with this raw return."""
        self.episodes += 1
        self.returns.append(total)
        self.lengths.append(length)

    def log(self, frame: int, metrics: Mapping[str, float]) -> None:
        """A log point; one that an earlier life wrote already is not written again."""
        average = _mean(self.returns)
        if average is not None:
            self.points.append(average)
            if self.best is None or average > self.best:
                self.best, self.improved = average, True
        row = {
            "frame": frame,
            "seconds": round(self.seconds, 3),
            "fps": self._speed(frame),
            "episodes": self.episodes,
            "episode_return": average,
            "episode_return_ma": _mean(self.points),
            "length": _mean(self.lengths),
            **metrics,
        }
        if self.metrics.write(row):
            self.events.scalars(frame, {name: value for name, value in row.items() if value is not None})

    def _speed(self, frame: int) -> float:
        """Frames a second over the last log points of this life."""
        before, then = self._times[0]
        self._times.append((frame, now := time.monotonic()))
        return round((frame - before) / max(now - then, 1e-9), 1)

    def state(self) -> dict[str, Any]:
        """What the metrics of later log points depend on."""
        return {
            "episodes": self.episodes,
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "points": list(self.points),
            "best": self.best,
        }

    def restore(self, state: Mapping[str, Any], frame: int) -> None:
        """Goes on as an earlier life stood."""
        self.episodes, self.best = state["episodes"], state["best"]
        for name in ("returns", "lengths", "points"):
            getattr(self, name).extend(state[name])
        self._times.clear()
        self._times.append((frame, time.monotonic()))

    def sync(self) -> None:
        """Makes the log points outlive the machine: to be called before the checkpoint that stands on them."""
        self.metrics.sync()
        self.events.flush()

    def close(self) -> None:
        self.events.close()


def _mean(values: Sequence[float] | deque[float] | deque[int]) -> float | None:
    return sum(values) / len(values) if values else None
