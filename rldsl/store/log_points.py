"""Log points of a session as one with a coarser log interval would have taken them.

A log point is a snapshot: of the episodes that have ended and of the latest update. A session whose log interval is a
multiple of another one's has a subset of its log points, except for the average over the last log points.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

RETURN, AVERAGE = "episode_return", "episode_return_ma"


class LogPoints(NamedTuple):
    """When log points are taken: in the step that reaches a multiple of `interval`; a step has `step` frames."""

    interval: int
    step: int
    window: int
    """Log points that are averaged."""

    def includes(self, frame: int) -> bool:
        return frame // self.interval > (frame - self.step) // self.interval

    def thinned(self, text: str) -> str:
        """metrics.csv with these log points only."""
        header, *lines = text.splitlines()
        columns = header.split(",")
        averaged = columns.index(AVERAGE)
        rows = [line.split(",") for line in lines]
        kept = [cells for cells in rows if self.includes(int(cells[0]))]
        for cells, points in zip(kept, self._points(columns, kept), strict=True):
            cells[averaged] = repr(sum(points) / len(points)) if points else ""
        return "".join(f"{','.join(cells)}\n" for cells in (columns, *kept))

    def _points(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Sequence[float]]:
        """For each row the returns that its average is about."""
        at, points = columns.index(RETURN), deque[float](maxlen=self.window)
        for cells in rows:
            if cells[at]:
                points.append(float(cells[at]))
            yield list(points)

    def edit(self, text: str, frame: int, tree: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Changes the state in the checkpoint of a frame to one whose log points are those of `text`, a metrics.csv."""
        import numpy as np

        header, *lines = text.splitlines()
        *_, points = [(), *self._points(header.split(","), [line.split(",") for line in lines])]
        tree["world"]["next_log"] = (frame // self.interval + 1) * self.interval
        tree["world"]["recorder"]["points"] = list(points)
        if metrics := tree.get("metrics"):
            data = text.encode()
            metrics.update(rows=len(lines), sha256=hashlib.sha256(data).hexdigest())
            arrays[metrics["copy"]["$array"]] = np.frombuffer(data, np.uint8)
