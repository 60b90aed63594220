"""Follows the end of a log file."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 256 * 1024
"""The most that one call reads; of a long log, only the end is shown."""


class LogTail:
    """Reads a log, starting near its end. A line is returned once it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset: int | None = None
        self._partial_line = b""

    def read_new(self) -> list[str]:
        """The lines added since the last call; a log that was truncated is read again."""
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                start = self._start(size)
                file.seek(start)
                data = file.read(min(size - start, MAX_BYTES))
        except OSError:
            return []
        self._offset = start + len(data)
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        # Of a progress bar, whose states are separated by carriage returns, only the last state is shown.
        return [line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2] for line in lines]

    def _start(self, size: int) -> int:
        if self._offset is None or size < self._offset:
            self._partial_line = b""
            return max(0, size - MAX_BYTES)
        return self._offset
