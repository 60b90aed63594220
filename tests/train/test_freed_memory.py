"""Freed memory serves the next batch, and leaves the process now and then."""

import ctypes
import subprocess
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


FAULTS = """
import resource, sys, torch
from rldsl.train.freed_memory import FreedMemory

def batches(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        made = [torch.ones(2**20) for _ in range(8)]
        del made
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

as_it_was = batches(20)
memory = FreedMemory()
batches(1)
print(as_it_was, batches(20))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts the faults of Linux")
def test_what_was_freed_serves_the_next_batch() -> None:
    """Eight blocks of 4 MB, a thousand pages each: got from the system once, and not for every batch."""
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    said = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True).stdout
    before, after = map(int, said.split())
    assert 10 * after < before
