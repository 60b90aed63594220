"""Freed memory goes back to the system.

The C library keeps it, and an older one (glibc before 2.38, bug 14581) cannot use it for aligned tensors again, so that
a process with large batches would grow without end.
"""

from __future__ import annotations

import ctypes
import time

SECONDS = 10.0
"""Between two returns, each of which takes about a millisecond."""


class FreedMemory:
    """Call it often: now and then it gives back what was freed."""

    def __init__(self) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        self._due = time.monotonic() + SECONDS

    def give_back(self) -> None:
        if self._trim is not None and time.monotonic() >= self._due:
            self._trim(0)
            self._due = time.monotonic() + SECONDS
