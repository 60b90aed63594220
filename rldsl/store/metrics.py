"""metrics.csv: one line per log point, exact floats, strictly increasing frames."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldsl.store.errors import CheckpointDamaged, WrongColumns, writing
from rldsl.store.files import TailReader, append_line, replace_bytes, sync_file

Value = int | float | None
Row = dict[str, Value]

FRAME = "frame"
RENAMED = {"return": "episode_return", "return_ma": "episode_return_ma"}
"""Columns that were renamed in schema 2."""
TAIL = 4096  # bytes at the end of a file that usually contain its last row


class MetricsWriter:
    """Appends log points. Points up to the last frame of the file are skipped: a resumed session repeats them.

    It keeps what it has written, so that a checkpoint can store a copy: the file itself may be damaged meanwhile.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = _checked_columns(columns)
        existing = _columns_of(path)
        if existing is None:
            append_line(path, ",".join(self.columns))
        elif existing != self.columns:
            raise WrongColumns(f"{path} {_mismatch(existing, self.columns)}")
        self._content = bytearray(_whole_lines(path))
        self._sha256 = hashlib.sha256(self._content)
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
        line = ",".join(cells)
        append_line(self.path, line)
        data = line.encode() + b"\n"
        self._content += data
        self._sha256.update(data)
        self.last_frame = int(frame)
        return True

    def fingerprint(self) -> dict[str, Any]:
        """How many rows were written, and the digest of the file with them."""
        return {"rows": self._content.count(b"\n") - 1, "sha256": self._sha256.hexdigest()}

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores: the fingerprint, and a copy of the file to restore it from."""
        import numpy as np

        return {**self.fingerprint(), "copy": np.frombuffer(bytes(self._content), np.uint8)}

    def sync(self) -> None:
        """Makes the rows survive a power failure. Call it before saving the checkpoint that refers to them."""
        with writing(self.path):
            sync_file(self.path)


def restore_metrics(path: Path, saved: Mapping[str, Any] | None, frame: int) -> str | None:
    """Gives a file the rows that it had at a checkpoint; returns a sentence if they had to be rebuilt from its copy.

    `saved` is `MetricsWriter.state()` of the checkpoint of `frame`; None without a checkpoint, or if an earlier version
    wrote it. Later rows are dropped: training computes them again.
    """
    present = path.read_bytes() if path.exists() else b""
    trusted = _up_to(_whole_lines(path), frame) if saved is None else _saved_copy(saved, path, frame)
    problem = None
    if saved is not None and not present.startswith(trusted):
        found = "was missing" if not path.exists() else "was empty" if not present else "was damaged"
        rows = trusted.count(b"\n") - 1
        problem = f"{path.name} {found}: restored {rows:,} rows from the checkpoint of frame {frame:,}"
    if present != trusted:
        replace_bytes(path, trusted)
    return problem


def _saved_copy(saved: Mapping[str, Any], path: Path, frame: int) -> bytes:
    try:
        copy = bytes(saved["copy"].tobytes())
        if hashlib.sha256(copy).hexdigest() == saved["sha256"] and copy.count(b"\n") == saved["rows"] + 1:
            return copy
    except (KeyError, TypeError, AttributeError):
        pass
    raise CheckpointDamaged(f"the copy of {path} in the checkpoint of frame {frame:,} is damaged")


def _up_to(content: bytes, frame: int) -> bytes:
    """The header and the rows up to a frame; lines that cannot be read are kept, because readers report them."""
    header, *lines = content.splitlines(keepends=True) or [b""]
    return header + b"".join(line for line in lines if (_frame_of(line) or 0) <= frame)


def _frame_of(line: bytes) -> int | None:
    cell = line.partition(b",")[0]
    return int(cell) if cell.isdigit() and len(cell) < 20 else None


def _whole_lines(path: Path) -> bytes:
    """The content of a file without an incomplete line at its end; empty if there is no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return b""
    return content[: content.rfind(b"\n") + 1]


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
        width = len(self.columns) if self.columns[:1] == [FRAME] else 0  # no row fits a damaged header
        parsed = [_parse_row(line, width) for line in lines]
        self.malformed += parsed.count(None)
        return [dict(zip(self.columns, values, strict=True)) for values in parsed if values is not None]


def read_metrics(path: Path) -> dict[str, list[Value]]:
    """All rows by column; empty if there is no file. Malformed lines are skipped."""
    header, *lines = TailReader(path).read_new() or [""]
    if not header:
        return {}
    columns = _split_header(header)
    if columns[0] != FRAME:
        return {}
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
    except OSError:
        return None
    with file:
        head = file.read(TAIL)
        size = os.fstat(file.fileno()).st_size
        header, line_break, _ = head.partition(b"\n")
        if not line_break:
            return None
        columns, first = _split_header(header.decode("utf-8", "replace")), len(header) + 1
        if columns[0] != FRAME:
            return None
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
