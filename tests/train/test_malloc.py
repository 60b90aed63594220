"""Freed memory is reused by the next batch, and returned to the system from time to time."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from rldsl.train import malloc
from rldsl.train.malloc import MemoryTrimmer

MB = 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_freed_below_a_block_in_use_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    monkeypatch.setattr(malloc, "TRIM_SECONDS", 0.0)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    blocks = [libc.malloc(MB // 10) for _ in range(1000)]
    for block in blocks:
        ctypes.memset(block, 1, MB // 10)
    for block in blocks[:-1]:
        libc.free(block)
    kept = resident()
    MemoryTrimmer().maybe_trim()
    assert resident() < kept - 50 * MB
    libc.free(blocks[-1])


FAULTS = """
import resource, sys, torch
from rldsl.train.malloc import MemoryTrimmer

def batches(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        made = [torch.ones(2**20) for _ in range(8)]
        del made
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

as_it_was = batches(20)
trimmer = MemoryTrimmer()
batches(1)
print(as_it_was, batches(20))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the faults of Linux")
def test_freed_memory_is_reused_by_the_next_batch() -> None:
    """Eight blocks of 4 MB, a thousand pages each: got from the system once, and not for every batch."""
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    printed = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True).stdout
    before, after = map(int, printed.split())
    assert 10 * after < before
