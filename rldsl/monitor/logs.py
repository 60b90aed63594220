"""The end of a log file, and what is added to it."""

from __future__ import annotations

import os
from pathlib import Path

FIRST_BYTES = 256 * 1024
"""How much of the end of a log is read when it is opened."""


class LogTail:
    """Reads a log from near its end on. A line is given once its line break is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset: int | None = None
        self._rest = b""

    def read_new(self) -> list[str]:
        """The lines since the last call; of a log that became shorter, all of it anew."""
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                start = self._start(size)
                file.seek(start)
                data = file.read(min(size - start, FIRST_BYTES))
        except OSError:
            return []
        self._offset = start + len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2] for line in lines]

    def _start(self, size: int) -> int:
        if self._offset is None or size < self._offset:
            self._rest = b""
            return max(0, size - FIRST_BYTES)
        return self._offset
