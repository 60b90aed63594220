"""Segments of a large ring, written while it goes on growing: the next checkpoint finds them and writes only the rest.

Nothing depends on it. What could not be written ahead, or is lost, the checkpoint writes itself.
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
"""Beside the checkpoints, which then have hard links of what is there."""


class SegmentsAhead:
    """Of one session. Call `look` often, `settle` before each checkpoint, `clear` after it, and `close` at the end."""

    def __init__(self, checkpoints: Path) -> None:
        self.folder = checkpoints / AHEAD
        self.failed = False
        self._thread = ThreadPoolExecutor(1, "segments")
        self._under_way: tuple[int, Saved, Future[Segment]] | None = None
        self._remove()  # what a killed process left

    def look(self, rows: AppendOnlyRing) -> None:
        """Begins to write the oldest segment that waits for it, unless another is being written or the ring is small.

        The segment is copied before: the ring may overwrite it while a slow disk takes it.
        """
        if rows.segments <= SEGMENTS or self.failed or (self._under_way and not self._under_way[2].done()):
            return
        self.settle()
        if (part := rows.unsaved()) is not None:
            begin, first, last = part
            arrays = {name: array.copy() for name, array in rows.read(first, last).items()}
            self._under_way = begin, rows.saved, self._thread.submit(self._write, begin, first, last, arrays)

    def settle(self) -> None:
        """Waits for the segment that is being written, which is saved then."""
        if self._under_way is None:
            return
        begin, saved, future = self._under_way
        self._under_way = None
        try:
            saved[begin] = future.result()
        except OSError:
            self.failed = True

    def clear(self) -> None:
        """A checkpoint has it all."""
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
