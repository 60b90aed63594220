"""Rows that are only ever added to, the oldest forgotten: a checkpoint writes only those that the last one has not.

They are written in segments that begin at the same rows every time. A segment that will not change any more is one
file, which the checkpoints that need it share by hard links: each stands alone, and removing one harms no other.
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
"""Of a whole ring that is not large. What is rewritten in vain is less than one; so is what outlives its use."""


class Segment(NamedTuple):
    """A file of rows, `first` to `last` without it."""

    path: Path
    first: int
    last: int
    fingerprint: dict[str, Any]


Saved = dict[int, Segment]
"""Segments by the row at which they begin."""


@dataclass(frozen=True)
class AppendOnlyRing:
    """The rows `first` to `last`, without it, of a ring of `lap` rows; a leaf of a state.

    `read(a, b)` gives the arrays of some rows, none of them beyond the ring's seam; they need not be copies. The newest
    row may still change, older ones may not. `saved` are the segments of the last checkpoint that was saved or loaded
    that cannot have changed since, and those written ahead of the next; the owner of the ring keeps it.
    """

    first: int
    last: int
    lap: int
    read: Callable[[int, int], Mapping[str, Array]]
    saved: Saved = field(default_factory=dict)
    segments: int = SEGMENTS
    """Of a whole ring."""

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """The segments as (the row at which it would begin, its first row, its end)."""
        row = self.first
        while row < self.last:
            begin, end = self._bounds(row)
            yield begin, row, min(end, self.last)
            row = end

    def unsaved(self) -> tuple[int, int, int] | None:
        """The oldest of the parts that is not saved and that cannot change any more."""
        whole = (part for part in self.parts() if part[2] < self.last)
        return next((part for part in whole if part[0] not in self.saved), None)

    def finished(self, begin: int, last: int) -> Segment | None:
        """The segment between these rows, if it is saved; one of another length is from another number of segments."""
        known = self.saved.get(begin)
        return known if known and known.last == last and known.path.exists() else None

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """As one that was saved and loaded."""
        return ((first, self.read(first, last)) for _, first, last in self.parts())

    def _bounds(self, row: int) -> tuple[int, int]:
        size = -(-self.lap // self.segments)
        seam = row - row % self.lap
        begin = seam + (row - seam) // size * size
        return begin, min(begin + size, seam + self.lap)


class RingSnapshot:
    """The rows of a loaded checkpoint; iterating reads them, a segment at a time, as (first row, arrays)."""

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
    """The newest row, in the last segment, may change."""
    return {begin: segments[begin] for begin in sorted(segments)[:-1]}


def link(source: Path, target: Path) -> None:
    """The same file under two names, or a copy where the filesystem has no links."""
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())
