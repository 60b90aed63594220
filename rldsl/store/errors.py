"""What can go wrong with a run directory. The text of every error is one plain sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoreError(Exception):
    """Base of every error of the run directory that a person may see."""


class CannotWrite(StoreError):
    """A file or directory could not be written; what was there before still stands."""


class DiskFull(CannotWrite):
    """The disk, the quota or the file size limit is used up."""


class WrongColumns(StoreError):
    """Metrics do not have the columns that their file has."""


class CheckpointRefused(StoreError):
    """A state holds something that a checkpoint must not or cannot hold."""


class CheckpointDamaged(StoreError):
    """There are checkpoints, and none of them is whole."""


class AlreadyRunning(StoreError):
    """Another process holds the session."""


class SessionNotFound(StoreError):
    """No session, or more than one, answers to a name."""


def cannot_write(path: Path | str, error: OSError) -> CannotWrite:
    """The sentence for an operating system error met while writing `path`."""
    if error.errno in FULL:
        return DiskFull(f"cannot write {path}: the disk is full ({os.strerror(error.errno or 0).lower()})")
    return CannotWrite(f"cannot write {path}: {(error.strerror or str(error)).lower()}")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turns an operating system error inside the block into a sentence that names `path`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error
