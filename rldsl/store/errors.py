"""Errors of run directories. Every message is one sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rldsl.spec.errors import one_line

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StoreError(Exception):
    """Base class of all errors of run directories. Its text is one line, whatever is in the files that it is about."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class CannotWrite(StoreError):
    """A file or directory could not be written; the previous content is unchanged."""


class DiskFull(CannotWrite):
    """The disk, the quota or the file size limit is exhausted."""


class WrongColumns(StoreError):
    """Metrics do not have the columns of their file."""


class CheckpointRefused(StoreError):
    """A state contains something that cannot be stored in a checkpoint."""


class CheckpointDamaged(StoreError):
    """There are checkpoints, but all of them are damaged."""


class CheckpointOutdated(StoreError):
    """A checkpoint was written by an earlier version and cannot be resumed."""


class AlreadyRunning(StoreError):
    """Another process holds the session."""


class RecordDamaged(StoreError):
    """A `session.json` is not what was written."""


class ClaimLost(StoreError):
    """Another process has taken over the session that this one was writing to."""


class OtherCode(StoreError):
    """A session was started with other code than the present one."""


class SessionNotFound(StoreError):
    """No session, or more than one, matches a name."""


def cannot_write(path: Path | str, error: OSError) -> CannotWrite:
    """The StoreError for an operating system error while writing `path`."""
    if error.errno in FULL:
        return DiskFull(f"cannot write {path}: the disk is full ({os.strerror(error.errno or 0).lower()})")
    return CannotWrite(f"cannot write {path}: {(error.strerror or str(error)).lower()}")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Converts an OSError inside the block into a StoreError that names `path`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error
