"""metrics.csv: one line per log point, exact floats, strictly increasing frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldsl.store.errors import WrongColumns, writing
from rldsl.store.files import TailReader, append_line, sync_file

Value = int | float | None
Row = dict[str, Value]

FRAME = "frame"
RENAMED = {"return": "episode_return", "return_ma": "episode_return_ma"}
"""Columns that were renamed in schema 2."""
TAIL = 4096  # bytes at the end of a file that usually contain its last row


class MetricsWriter:
    """Appends log points. Points up to the last frame of the file are skipped: a resumed session repeats them."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = _checked_columns(columns)
        existing = _columns_of(path)
        if existing is None:
            append_line(path, ",".join(self.columns))
        elif existing != self.columns:
            raise WrongColumns(f"{path} {_mismatch(existing, self.columns)}")
        last = last_row(path)
        self.last_frame = -1 if last is None else int(last[FRAME] or 0)

    def write(self, row: Mapping[str, Value]) -> bool:
        """Returns whether the row was new. Once this returns, the row survives the death of the process."""
        if row.keys() != set(self.columns):
            raise WrongColumns(f"{self.path} {_mismatch(self.columns, list(row))}")
        frame = row[FRAME]
        if frame is None or int(frame) != frame:
            raise WrongColumns(f"a row for {self.path} has the frame {frame!r}, which is not a whole number")
        if frame <= self.last_frame:
            return False
        cells = [str(int(frame)), *(_format(row[name]) for name in self.columns[1:])]
        append_line(self.path, ",".join(cells))
        self.last_frame = int(frame)
        return True

    def sync(self) -> None:
        """Makes the rows survive a power failure. Call it before saving the checkpoint that refers to them."""
        with writing(self.path):
            sync_file(self.path)


class MetricsReader:
    """Follows a metrics file. Malformed lines are counted and skipped."""

    def __init__(self, path: Path) -> None:
        self.columns: list[str] = []
        self.malformed = 0
        self._tail = TailReader(path)

    @property
    def restarted(self) -> bool:
        """Whether the last call found a new file and read it from the beginning."""
        return self._tail.restarted

    def read_new(self) -> list[Row]:
        lines = self._tail.read_new()
        if self.restarted:
            self.columns, self.malformed = [], 0
        if lines and not self.columns:
            self.columns = _split_header(lines.pop(0))
        parsed = [_parse_row(line, len(self.columns)) for line in lines]
        self.malformed += parsed.count(None)
        return [dict(zip(self.columns, values, strict=True)) for values in parsed if values is not None]


def read_metrics(path: Path) -> dict[str, list[Value]]:
    """All rows by column; empty if there is no file. Malformed lines are skipped."""
    header, *lines = TailReader(path).read_new() or [""]
    if not header:
        return {}
    columns = _split_header(header)
    rows = [cells for line in lines if len(cells := line.split(",")) == len(columns)]
    try:
        parsed = _parse_columns(rows, len(columns))
    except ValueError:
        valid = [values for line in lines if (values := _parse_row(line, len(columns))) is not None]
        parsed = _transposed(valid, len(columns))
    return dict(zip(columns, parsed, strict=True))


def last_row(path: Path) -> Row | None:
    """The last complete row, read from the end of the file."""
    try:
        file = path.open("rb", buffering=0)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with file:
        head = file.read(TAIL)
        size = os.fstat(file.fileno()).st_size
        header, line_break, _ = head.partition(b"\n")
        if not line_break:
            return None
        columns, first = _split_header(header.decode("utf-8", "replace")), len(header) + 1
        window = TAIL
        while True:
            start = max(first, size - window)
            file.seek(start)
            values = _last_values(file.read(size - start), len(columns), cut=start > first)
            if values is not None:
                return dict(zip(columns, values, strict=True))
            if start == first:
                return None
            window *= 8


def _last_values(data: bytes, width: int, cut: bool) -> list[Value] | None:
    """The last valid row in a chunk from the end of a file; its first line is incomplete if `cut`."""
    lines = data.split(b"\n")[1 if cut else 0 : -1]
    for line in reversed(lines):
        values = _parse_row(line.decode("utf-8", "replace"), width)
        if values is not None:
            return values
    return None


def _columns_of(path: Path) -> list[str] | None:
    try:
        with path.open("rb") as file:
            header = file.readline()
    except FileNotFoundError:
        return None
    return _split_header(header.decode("utf-8", "replace").rstrip("\n")) if header.endswith(b"\n") else None


def _split_header(header: str) -> list[str]:
    return [RENAMED.get(name, name) for name in header.split(",")]


def _checked_columns(columns: Sequence[str]) -> list[str]:
    names = list(columns)
    if names[:1] != [FRAME]:
        raise WrongColumns(f"the first column of metrics must be {FRAME!r}, not {names[:1]}")
    if len(set(names)) < len(names):
        raise WrongColumns(f"the columns of metrics repeat a name: {', '.join(names)}")
    for name in names:
        if not name or any(mark in name for mark in ',"\r\n'):
            raise WrongColumns(f"{name!r} cannot be the name of a column")
    return names


def _mismatch(expected: Sequence[str], got: Sequence[str]) -> str:
    missing = [name for name in expected if name not in got]
    extra = [name for name in got if name not in expected]
    if not missing and not extra:
        return f"has its columns in another order: {', '.join(expected)}, not {', '.join(got)}"
    parts = [f"{kind} {', '.join(names)}" for kind, names in (("lacks", missing), ("must not have", extra)) if names]
    return f"has the columns {', '.join(expected)}: the row {' and '.join(parts)}"


def _format(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, int):  # bool is one
        return str(int(value))
    if hasattr(value, "dtype") and value.dtype.kind in "iub":
        return str(int(value))
    return repr(float(value))


def _parse_row(line: str, width: int) -> list[Value] | None:
    cells = line.split(",")
    if len(cells) != width:
        return None
    try:
        return [int(cells[0]), *map(_parse, cells[1:])]
    except ValueError:
        return None


def _parse(cell: str) -> Value:
    if not cell:
        return None
    return int(cell) if cell.isdigit() or (cell[0] == "-" and cell[1:].isdigit()) else float(cell)


def _parse_columns(rows: list[list[str]], width: int) -> list[list[Value]]:
    """Raises ValueError if any cell is malformed."""
    frames, *others = _transposed(rows, width)
    return [list(map(int, frames)), *map(_parse_column, others)]


def _parse_column(cells: list[str]) -> list[Value]:
    if "".join(cells).count(".") == len(cells):  # fast path for the usual case: all cells are floats
        return list(map(float, cells))
    return list(map(_parse, cells))


def _transposed(rows: list[list[Any]], width: int) -> list[list[Any]]:
    return list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in range(width)]
