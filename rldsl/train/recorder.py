"""The learning curve of one session: collects episodes, takes log points, writes metrics.csv and TensorBoard events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rldsl.maths.scores import WINDOW
from rldsl.store.metrics import FRAME, MetricsWriter, restore_metrics
from rldsl.store.session_dir import SessionDir
from rldsl.store.tensorboard import Settings, TensorBoardWriter

COLUMNS = ("frame", "seconds", "fps", "episodes", "episode_return", "episode_return_ma", "length")
"""Columns of every log point. `episode_return` is the mean of the last 100 episodes, `episode_return_ma` the mean of
`episode_return` over the last 100 log points."""


class Recorder:
    """Takes log points during an iteration and writes them after it."""

    def __init__(
        self,
        directory: SessionDir,
        columns: Sequence[str],
        earlier_seconds: float,
        saved: Mapping[str, Any] | None = None,
        frame: int = 0,
    ) -> None:
        """`columns` are those beside `COLUMNS`; `earlier_seconds` is the training time of earlier processes.

        `saved` are the metrics in the checkpoint of `frame` that the session is resumed from.
        """
        self.restored = restore_metrics(directory.metrics, saved, frame)
        """A sentence if metrics.csv was not what its checkpoint says, and was restored."""
        self.metrics = MetricsWriter(directory.metrics, [*COLUMNS, *columns])
        again = frame + 1 if frame or directory.tensorboard.exists() else None
        self.events = TensorBoardWriter(directory.tensorboard, resume_step=again, settings=lambda: _settings(directory))
        self.earlier_seconds = earlier_seconds
        self.started = time.monotonic()
        self.episodes = 0
        self.returns: deque[float] = deque(maxlen=WINDOW)
        self.lengths: deque[int] = deque(maxlen=WINDOW)
        self.points: deque[float] = deque(maxlen=WINDOW)
        self.numbers: dict[str, deque[float]] = {}
        """The environment's own numbers of the last episodes, by name."""
        self.best: float | None = None
        self.improved = False
        """Whether a log point since this was last set to False has the highest `episode_return` so far."""
        self._times: deque[tuple[int, float]] = deque([(0, self.started)], maxlen=WINDOW)
        self._unwritten: list[dict[str, float | None]] = []

    @property
    def seconds(self) -> float:
        """Training time of the session, over all processes that worked on it."""
        return self.earlier_seconds + time.monotonic() - self.started

    def expect_numbers(self, names: Sequence[str]) -> None:
        """The names of the numbers that the environment gives for every episode."""
        self.numbers = {name: deque(maxlen=WINDOW) for name in names}

    def add_episode(self, episode_return: float, length: int, numbers: Mapping[str, float] | None = None) -> None:
        """Counts an episode that ended, with its raw return and the numbers that the environment gives for it."""
        self.episodes += 1
        self.returns.append(episode_return)
        self.lengths.append(length)
        for name, number in (numbers or {}).items():
            self.numbers[name].append(number)

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
                "fps": None,
                "episodes": self.episodes,
                "episode_return": average,
                "episode_return_ma": _mean(self.points),
                "length": _mean(self.lengths),
                **{name: _mean(values) for name, values in self.numbers.items()},
                **metrics,
            }
        )

    @property
    def pending(self) -> bool:
        """Whether there are log points to write."""
        return bool(self._unwritten)

    def write_log_points(
        self, frame: int, evaluation: Mapping[str, float], *, steady: bool = True
    ) -> list[dict[str, float | None]]:
        """Writes the log points of an iteration that ended at `frame`, each with the latest results of evaluation.

        Returns the rows of metrics.csv.

        Speed is measured here, so that the frames of an iteration count together with the time in which they are
        learned from. An iteration that was not `steady`, because it compiled or learned nothing yet, has none.
        """
        if not steady:
            self._restart_speed(frame)
        fps = self._speed(frame) if steady else None
        rows = [{**point, "fps": fps, **evaluation} for point in self._unwritten]
        for point, row in zip(self._unwritten, rows, strict=True):
            if self.metrics.write(row):
                scalars = {name: value for name, value in row.items() if value is not None and name != FRAME}
                self.events.scalars(int(point[FRAME] or 0), scalars)
        self._unwritten.clear()
        return rows

    def _speed(self, frame: int) -> float | None:
        """Frames per second over the last 100 iterations with log points, since `_restart_speed`."""
        if not self._unwritten:
            return None
        before, then = self._times[0]
        self._times.append((frame, now := time.monotonic()))
        return round((frame - before) / max(now - then, 1e-9), 1)

    def _restart_speed(self, frame: int) -> None:
        self._times.clear()
        self._times.append((frame, time.monotonic()))

    def state(self) -> dict[str, Any]:
        """What later log points depend on."""
        return {
            "episodes": self.episodes,
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "points": list(self.points),
            "best": self.best,
            "numbers": {name: list(values) for name, values in self.numbers.items()},
        }

    def restore(self, state: Mapping[str, Any], frame: int) -> None:
        """Continues from a saved state."""
        self.episodes, self.best = state["episodes"], state["best"]
        for name in ("returns", "lengths", "points"):
            getattr(self, name).extend(state[name])
        for name, values in state.get("numbers", {}).items():  # checkpoints of earlier versions have none
            self.numbers[name].extend(values)
        self._restart_speed(frame)

    def restart_best(self) -> None:
        """Counts the present policy as the best one so far, because the best one is lost."""
        self.best = _mean(self.returns)

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
