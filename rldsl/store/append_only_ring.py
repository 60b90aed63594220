"""Incremental checkpoints of ring buffers: a checkpoint writes only the rows that the previous one does not have.

Rows are written in segments with fixed boundaries. A segment that can no longer change is one file, shared by
checkpoints through hard links, so every checkpoint is complete and removing one does not affect the others.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

SEGMENTS = 16
"""Default number of segments of a full ring. At most one segment is rewritten or kept longer than needed."""


class Segment(NamedTuple):
    """A file with the rows from `first` up to, but not including, `last`."""

    path: Path
    first: int
    last: int
    fingerprint: dict[str, Any]


Saved = dict[int, Segment]
"""Segments by the row at which their boundaries begin."""


@dataclass(frozen=True)
class AppendOnlyRing:
    """The rows from `first` up to, but not including, `last` of a ring buffer with `lap` rows; a leaf of a state.

    Rows are counted from the beginning of training; row `i` is at position `i % lap`. `read(a, b)` returns the arrays
    of rows that are contiguous in the ring, as views or copies. Only the newest row may still change. `saved` holds
    the unchanged segments of the last saved or loaded checkpoint and those written ahead of the next one; it belongs
    to the owner of the ring.
    """

    first: int
    last: int
    lap: int
    read: Callable[[int, int], Mapping[str, Array]]
    saved: Saved = field(default_factory=dict)
    segments: int = SEGMENTS
    """Number of segments of a full ring."""

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """The segments as (lower boundary, first row, end); the oldest one may start above its boundary."""
        row = self.first
        while row < self.last:
            begin, end = self._bounds(row)
            yield begin, row, min(end, self.last)
            row = end

    def unsaved(self) -> tuple[int, int, int] | None:
        """The oldest part that is complete but not saved."""
        whole = (part for part in self.parts() if part[2] < self.last)
        return next((part for part in whole if part[0] not in self.saved), None)

    def finished(self, begin: int, last: int) -> Segment | None:
        """The saved segment between these rows, if there is one. The length differs if `segments` was different."""
        known = self.saved.get(begin)
        return known if known and known.last == last and known.path.exists() else None

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """Iterates like the `RingSnapshot` of a loaded checkpoint."""
        return ((first, self.read(first, last)) for _, first, last in self.parts())

    def _bounds(self, row: int) -> tuple[int, int]:
        size = -(-self.lap // self.segments)
        seam = row - row % self.lap
        begin = seam + (row - seam) // size * size
        return begin, min(begin + size, seam + self.lap)


class RingSnapshot:
    """The rows of a loaded checkpoint. Iterating reads them segment by segment as (first row, arrays)."""

    def __init__(self, segments: Saved) -> None:
        self.segments = segments

    @property
    def saved(self) -> Saved:
        return without_newest(self.segments)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Array]]]:
        from safetensors.numpy import load_file

        for _, segment in sorted(self.segments.items()):
            yield segment.first, load_file(segment.path)


def without_newest(segments: Saved) -> Saved:
    """All segments but the last one, whose newest row may still change."""
    return {begin: segments[begin] for begin in sorted(segments)[:-1]}


def link(source: Path, target: Path) -> None:
    """Hard-links `source` as `target`, or copies it if the filesystem does not support links."""
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())
