"""Freed memory leaves the process."""

import ctypes
import sys
from pathlib import Path

import pytest

from rldsl.train import freed_memory
from rldsl.train.freed_memory import FreedMemory

MB = 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_lies_freed_below_something_in_use_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    monkeypatch.setattr(freed_memory, "SECONDS", 0.0)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    blocks = [libc.malloc(MB // 10) for _ in range(1000)]
    for block in blocks:
        ctypes.memset(block, 1, MB // 10)
    for block in blocks[:-1]:
        libc.free(block)
    kept = resident()
    FreedMemory().give_back()
    assert resident() < kept - 50 * MB
    libc.free(blocks[-1])
