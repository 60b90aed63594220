"""Writes TensorBoard events without torch or TensorFlow, one unbuffered record per log point.

Metrics are grouped by tag: `charts/` (returns and lengths of episodes), `eval/`, `losses/`, `train/` (the agent's other
metrics), `time/`. The step is the frame. The settings are written once: for the HParams dashboard, where the seeds of a
trial form a group, and as text.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rldsl.store.errors import writing
from rldsl.store.processes import host_name

GROUPS = {
    **dict.fromkeys(("episode_return", "episode_return_ma", "length", "episodes"), "charts"),
    **dict.fromkeys(("seconds", "fps"), "time"),
}


def tag_of(column: str) -> str:
    """The tag of a column of metrics.csv: `charts/episode_return`. A name that has a group already is kept."""
    if "/" in column:
        return column
    if column.startswith("eval_"):
        return f"eval/{column}"
    return f"{GROUPS.get(column) or ('losses' if column.endswith('_loss') else 'train')}/{column}"


@dataclass(frozen=True)
class Settings:
    """What the run of a session is about, for TensorBoard."""

    trial: str
    """The id of the trial."""
    values: Mapping[str, Any]
    """The settings as plain data."""
    text: str
    """The settings as a reader wants to see them."""

    def hparams(self) -> dict[str, bool | int | float | str]:
        """Every leaf of the settings by its path, such as `agent.gamma`."""
        return dict(_leaves(self.values))


class TensorBoardWriter:
    """Appends scalars to a new event file, which is created with the first scalar.

    `resume_step` makes TensorBoard discard the points of earlier files from that step on, because a resumed session
    writes them again. `settings` is asked for when the first event file of a directory is created.
    """

    def __init__(
        self, directory: Path, *, resume_step: int | None = None, settings: Callable[[], Settings] | None = None
    ) -> None:
        self.directory = directory
        self._resume_step = resume_step
        self._settings = settings
        self._records: Any = None

    def scalars(self, step: int, values: Mapping[str, float], wall_time: float | None = None) -> None:
        """Writes metrics by their columns."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        points = [Summary.Value(tag=tag_of(name), simple_value=float(value)) for name, value in values.items()]
        self._write(step=step, summary=Summary(value=points), wall_time=time.time() if wall_time is None else wall_time)

    def flush(self) -> None:
        if self._records is not None:
            with writing(self.directory):
                self._records.flush()

    def close(self) -> None:
        if self._records is not None:
            with writing(self.directory):
                self._records.close()
            self._records = None

    def _write(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        with writing(self.directory):
            if self._records is None:
                self._open()
            self._records.write(Event(**fields).SerializeToString())

    def _open(self) -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        self.directory.mkdir(parents=True, exist_ok=True)
        first = not any(self.directory.iterdir())
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{host_name()}.{os.getpid()}.{time.monotonic_ns()}"
        self._records = RecordWriter((self.directory / name).open("xb", buffering=0))
        self._write(wall_time=now, file_version="brain.Event:2")
        if self._resume_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._write(wall_time=now, step=self._resume_step, session_log=start)
        if first and self._settings is not None:
            for summary in _summaries(self._settings(), now):
                self._write(wall_time=now, step=0, summary=summary)


def _summaries(settings: Settings, now: float) -> Iterator[Any]:
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.text.summary_v2 import text_pb

    yield hparams_pb(settings.hparams(), trial_id=settings.trial, start_time_secs=now)
    yield text_pb("settings", "\n".join(f"    {line}" for line in settings.text.splitlines()))  # Markdown, verbatim


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, bool | int | float | str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    else:
        yield path, value if isinstance(value, bool | int | float | str) else str(value)
