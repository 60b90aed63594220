"""Settings of glibc's malloc for training: reuse freed memory, and return what is left over from time to time.

By default glibc returns freed memory to the system as soon as enough of it is free, and the next update pays for page
faults to get it back. The higher thresholds set here keep it in the process. glibc before 2.38 fragments under aligned
allocations, which torch makes (bug 14581), so the process would grow without bound: `malloc_trim` is called regularly.
"""

from __future__ import annotations

import ctypes
import time

TRIM_SECONDS = 10.0
"""Seconds between two calls of `malloc_trim`, each of which takes about a millisecond."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameter numbers of `mallopt`, from malloc.h."""
TRIM_THRESHOLD = 256 << 20
"""Bytes that may be free at the top of the heap before glibc returns them by itself."""
MMAP_THRESHOLD = 32 << 20
"""Blocks of this size and larger are mapped separately, and always returned when freed."""


class MemoryTrimmer:
    """Raises the thresholds when constructed. Does nothing on platforms without glibc."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self._malloc_trim = getattr(libc, "malloc_trim", None)
        self._next_trim = time.monotonic() + TRIM_SECONDS
        if self._malloc_trim is not None:
            libc.mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD)
            libc.mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD)

    def maybe_trim(self) -> None:
        """Returns freed memory to the system if `TRIM_SECONDS` have passed since the last time."""
        if self._malloc_trim is not None and time.monotonic() >= self._next_trim:
            self._malloc_trim(0)
            self._next_trim = time.monotonic() + TRIM_SECONDS
