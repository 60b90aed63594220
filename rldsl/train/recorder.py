"""The learning curve of one session: collects episodes, takes log points, writes metrics.csv and TensorBoard events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rldsl.maths.scores import WINDOW
from rldsl.store.metrics import FRAME, MetricsWriter
from rldsl.store.session_dir import SessionDir
from rldsl.store.tensorboard import Settings, TensorBoardWriter

COLUMNS = ("frame", "seconds", "fps", "episodes", "episode_return", "episode_return_ma", "length")
"""Columns of every log point. `episode_return` is the mean of the last 100 episodes, `episode_return_ma` the mean of
`episode_return` over the last 100 log points."""


class Recorder:
    """Takes log points during an iteration and writes them after it."""

    def __init__(self, directory: SessionDir, columns: Sequence[str], earlier_seconds: float) -> None:
        """`columns` are those beside `COLUMNS`; `earlier_seconds` is the training time of earlier processes."""
        self.metrics = MetricsWriter(directory.metrics, [*COLUMNS, *columns])
        self.events = TensorBoardWriter(directory.tensorboard, settings=lambda: _settings(directory))
        self.earlier_seconds = earlier_seconds
        self.started = time.monotonic()
        self.episodes = 0
        self.returns: deque[float] = deque(maxlen=WINDOW)
        self.lengths: deque[int] = deque(maxlen=WINDOW)
        self.points: deque[float] = deque(maxlen=WINDOW)
        self.best: float | None = None
        self.improved = False
        """Whether a log point since this was last set to False has the highest `episode_return` so far."""
        self._times: deque[tuple[int, float]] = deque([(0, self.started)], maxlen=WINDOW)
        self._unwritten: list[dict[str, float | None]] = []

    @property
    def seconds(self) -> float:
        """Training time of the session, over all processes that worked on it."""
        return self.earlier_seconds + time.monotonic() - self.started

    def add_episode(self, episode_return: float, length: int) -> None:
        """Counts an episode that ended, with its raw return."""
        self.episodes += 1
        self.returns.append(episode_return)
        self.lengths.append(length)

    def take_log_point(self, frame: int, metrics: Mapping[str, float]) -> None:
        """Keeps the statistics of this moment, and the agent's latest metrics, for `write_log_points`."""
        average = _mean(self.returns)
        if average is not None:
            self.points.append(average)
            if self.best is None or average > self.best:
                self.best, self.improved = average, True
        self._unwritten.append(
            {
                "frame": frame,
                "seconds": round(self.seconds, 3),
                "fps": self._speed(frame),
                "episodes": self.episodes,
                "episode_return": average,
                "episode_return_ma": _mean(self.points),
                "length": _mean(self.lengths),
                **metrics,
            }
        )

    def write_log_points(self, evaluation: Mapping[str, float]) -> None:
        """Writes the log points taken since the last call, each with the latest results of evaluation.

        A resumed session computes the log points behind its checkpoint again: those in the file are not repeated.
        """
        for point in self._unwritten:
            row = {**point, **evaluation}
            if self.metrics.write(row):
                scalars = {name: value for name, value in row.items() if value is not None and name != FRAME}
                self.events.scalars(int(point[FRAME] or 0), scalars)
        self._unwritten.clear()

    def _speed(self, frame: int) -> float:
        """Frames per second over the last 100 log points of this process."""
        before, then = self._times[0]
        self._times.append((frame, now := time.monotonic()))
        return round((frame - before) / max(now - then, 1e-9), 1)

    def state(self) -> dict[str, Any]:
        """What later log points depend on."""
        return {
            "episodes": self.episodes,
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "points": list(self.points),
            "best": self.best,
        }

    def restore(self, state: Mapping[str, Any], frame: int) -> None:
        """Continues from a saved state."""
        self.episodes, self.best = state["episodes"], state["best"]
        for name in ("returns", "lengths", "points"):
            getattr(self, name).extend(state[name])
        self._times.clear()
        self._times.append((frame, time.monotonic()))

    def sync(self) -> None:
        """Syncs the files to disk; called before a checkpoint, which relies on the log points up to its frame."""
        self.metrics.sync()
        self.events.flush()

    def close(self) -> None:
        self.events.close()


def _settings(directory: SessionDir) -> Settings:
    record = directory.read_session()
    values = {name: record["trial"][name] for name in ("agent", "env", "budget")}
    return Settings(record["trial_id"], values, directory.config.read_text())


def _mean(values: Sequence[float] | deque[float] | deque[int]) -> float | None:
    return sum(values) / len(values) if values else None
