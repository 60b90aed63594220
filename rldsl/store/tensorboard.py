"""Writes TensorBoard events without torch or TensorFlow, one unbuffered record per log point."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rldsl.store.errors import writing
from rldsl.store.processes import host_name


class TensorBoardWriter:
    """Appends scalars to a new event file, which is created with the first scalar.

    `resume_step` makes TensorBoard discard the points of earlier files from that step on, because a resumed session
    writes them again.
    """

    def __init__(self, directory: Path, *, resume_step: int | None = None) -> None:
        self.directory = directory
        self._resume_step = resume_step
        self._records: Any = None

    def scalars(self, step: int, values: Mapping[str, float], wall_time: float | None = None) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(tag=tag, simple_value=float(value)) for tag, value in values.items()])
        self._write(step=step, summary=summary, wall_time=time.time() if wall_time is None else wall_time)

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
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{host_name()}.{os.getpid()}.{time.monotonic_ns()}"
        self._records = RecordWriter((self.directory / name).open("xb", buffering=0))
        self._write(wall_time=now, file_version="brain.Event:2")
        if self._resume_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._write(wall_time=now, step=self._resume_step, session_log=start)
