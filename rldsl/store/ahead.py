"""Writes segments of a large replay buffer in the background, so that the next checkpoint only writes the rest.

This is an optimization: segments that could not be written ahead, or are lost, are written by the checkpoint itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rldsl.store.append_only_ring import SEGMENTS, AppendOnlyRing, Saved, Segment
from rldsl.store.checkpoint import SEGMENT, write_segment

if TYPE_CHECKING:
    from rldsl.store.append_only_ring import Array

AHEAD = ".ahead"
"""Directory next to the checkpoints, which hard-link the segments in it."""


class SegmentsAhead:
    """Background writer of one session.

    Call `maybe_flush` often, `wait` before each checkpoint, `clear` after it, and `close` at the end.
    """

    def __init__(self, checkpoints: Path) -> None:
        self.folder = checkpoints / AHEAD
        self.failed = False
        self._thread = ThreadPoolExecutor(1, "segments")
        self._pending: tuple[int, Saved, Future[Segment]] | None = None
        self._remove()  # leftovers of a killed process

    def maybe_flush(self, rows: AppendOnlyRing) -> None:
        """Starts writing the oldest unsaved segment, unless one is being written already or the ring is small.

        The segment is copied first, because the ring may overwrite it while the disk is still writing.
        """
        if rows.segments <= SEGMENTS or self.failed or (self._pending and not self._pending[2].done()):
            return
        self.wait()
        if (part := rows.unsaved()) is not None:
            begin, first, last = part
            arrays = {name: array.copy() for name, array in rows.read(first, last).items()}
            self._pending = begin, rows.saved, self._thread.submit(self._write, begin, first, last, arrays)

    def wait(self) -> None:
        """Waits for the segment that is being written and registers it as saved."""
        if self._pending is None:
            return
        begin, saved, future = self._pending
        self._pending = None
        try:
            saved[begin] = future.result()
        except OSError:
            self.failed = True

    def clear(self) -> None:
        """Removes the segments after a checkpoint has linked them."""
        self.failed = False
        self._remove()

    def close(self) -> None:
        self._thread.shutdown()
        self._remove()

    def _write(self, begin: int, first: int, last: int, arrays: Mapping[str, Array]) -> Segment:
        self.folder.mkdir(parents=True, exist_ok=True)
        return write_segment(self.folder / f"{begin}{SEGMENT}", first, last, arrays)

    def _remove(self) -> None:
        with suppress(OSError):
            shutil.rmtree(self.folder)
