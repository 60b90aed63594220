"""Freed memory is there for the next batch, and now and then goes back to the system.

The C library would return it at once, when enough is free, and every update would pay for getting it again, page by
page. Nor may it keep it for ever: an older one (glibc before 2.38, bug 14581) cannot use it for aligned tensors again,
so that a process with large batches would grow without end.
"""

from __future__ import annotations

import ctypes
import time

SECONDS = 10.0
"""Between two returns, each of which takes about a millisecond."""
KEPT = {"M_TRIM_THRESHOLD": (-1, 256 << 20), "M_MMAP_THRESHOLD": (-3, 32 << 20)}
"""Bytes that may be free before they are returned; and from which on a block is not of the kind that is kept. By the
numbers that glibc has for them."""


class FreedMemory:
    """Call it often: now and then it gives back what was freed."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)  # of glibc alone
        self._due = time.monotonic() + SECONDS
        if self._trim is not None:
            for parameter, size in KEPT.values():
                library.mallopt(parameter, size)

    def give_back(self) -> None:
        if self._trim is not None and time.monotonic() >= self._due:
            self._trim(0)
            self._due = time.monotonic() + SECONDS
