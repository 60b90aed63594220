"""Atomic file operations: replace by rename, append whole lines. Readers on other hosts never see half a record."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rldsl.store.errors import CannotWrite, writing

PRIVATE = 0o600
"""The mode of files that may contain code or commands."""


def replace_bytes(path: Path, data: bytes, *, durable: bool = True, mode: int = 0o666) -> None:
    """Replaces `path` by rename. If anything fails, the old file is unchanged and no temporary file remains."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    with writing(path):
        try:
            _write_file(temporary, data, durable, mode)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        if durable:
            sync_directory(path.parent)


def replace_text(path: Path, text: str, *, durable: bool = True, mode: int = 0o666) -> None:
    replace_bytes(path, text.encode(), durable=durable, mode=mode)


def replace_json(path: Path, value: Any, *, durable: bool = True, mode: int = 0o666) -> None:
    replace_text(path, json.dumps(value, indent=2) + "\n", durable=durable, mode=mode)


def sync_directory(path: Path) -> None:
    """Makes renames inside `path` survive a power failure, if the filesystem supports it."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def append_line(path: Path, line: str, *, durable: bool = False) -> None:
    """Appends one whole line or nothing.

    The file is opened and closed each time, because network filesystems show the line to other hosts on close.
    A partial line that a killed writer left at the end is cut off first.
    """
    append_lines(path, [line], durable=durable)


def append_lines(path: Path, lines: Sequence[str], *, durable: bool = False) -> None:
    """Appends all of these lines or none; see `append_line`."""
    for line in lines:
        if "\n" in line:
            raise ValueError(f"a line cannot contain a line break: {line!r}")
    data = "".join(f"{line}\n" for line in lines).encode()
    with writing(path), _locked_for_append(path) as fd:
        size = _cut_half_line(fd)
        try:
            _write_at_once(fd, data)
            if durable:
                os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
    if durable and size == 0:
        sync_directory(path.parent)


def open_log(path: Path) -> BinaryIO:
    """Opens a log to append to it. A link is refused: in a directory that somebody else wrote, it may lead anywhere."""
    try:
        with writing(path):
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except CannotWrite as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ELOOP:
            raise CannotWrite(f"cannot write {path}: it is a symbolic link, remove it") from None
        raise
    return os.fdopen(fd, "ab")


class TailReader:
    """Reads the complete lines appended to a file since the last call.

    The file is not kept open between calls. A partial line at the end is read once it is complete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False  # whether the last call found a new or shorter file and read it from the beginning
        self.error: str | None = None  # why the file, which is there, could not be read by the last call
        self._offset = 0
        self._inode = 0

    def read_new(self) -> list[str]:
        data = self._read_rest()
        end = data.rfind(b"\n") + 1
        self._offset += end
        return [line.decode("utf-8", "replace") for line in data[:end].split(b"\n")[:-1]]

    def _read_rest(self) -> bytes:
        self.error = None
        try:
            status = os.stat(self.path)  # noqa: PTH116 (called thousands of times a second)
            self._follow(status.st_ino, status.st_size)
            if status.st_size == self._offset:
                return b""
            return _read_from(self.path, self._offset, status.st_size - self._offset)
        except (FileNotFoundError, NotADirectoryError):
            self._follow(0, 0)
            return b""
        except OSError as error:  # a directory, a file of another user, a link to itself
            self.error = (error.strerror or str(error)).lower()
            self._follow(0, 0)
            return b""

    def _follow(self, inode: int, size: int) -> None:
        same_file = inode == self._inode or self._offset == 0
        self.restarted = not same_file or size < self._offset
        self._inode = inode
        if self.restarted:
            self._offset = 0


def _read_from(path: Path, offset: int, size: int) -> bytes:
    """Up to `size` bytes; os.pread is faster than a file object for thousands of short files."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, offset)
    finally:
        os.close(fd)


def _write_file(path: Path, data: bytes, durable: bool, mode: int = 0o666) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())


@contextmanager
def _locked_for_append(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        with suppress(OSError):  # not every filesystem supports locks; a single writer needs none
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def _cut_half_line(fd: int) -> int:
    """Cuts off a partial last line and returns the size of the file."""
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return size
    whole = _end_of_last_line(fd, size)
    os.ftruncate(fd, whole)
    return whole


def _end_of_last_line(fd: int, size: int, block: int = 65536) -> int:
    while size > 0:
        start = max(0, size - block)
        found = os.pread(fd, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


def _write_at_once(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    if written < len(data):
        os.write(fd, data[written:])  # a short write means a full disk; writing the rest raises the actual error
        raise OSError("the line was written in two pieces")
