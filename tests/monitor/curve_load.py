"""Measures how long a curve takes to load, and its memory: `python -m tests.monitor.curve_load [LOG POINTS]`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from rldsl.monitor.curves import Curve
from tests.monitor.sample_sessions import COLUMNS


def write_many(path: Path, rows: int) -> None:
    """A metrics file as training writes it, with random values."""
    values = np.random.default_rng(0).normal(size=(rows, 5))
    with path.open("w") as file:
        file.write(",".join(COLUMNS) + "\n")
        for index, (a, b, c, d, e) in enumerate(values.tolist(), 1):
            file.write(f"{index * 100},{index / 10!r},1000.0,{index},{a!r},{b!r},{c!r},{d!r},{e!r}\n")


def load(path: Path) -> tuple[float, float, Curve]:
    """Seconds of CPU time and megabytes that reading a curve takes."""
    process = psutil.Process()
    before, began = process.memory_info().rss, time.process_time()
    curve, most = Curve(path.parent, "."), before
    for _ in curve.read_chunks():
        most = max(most, process.memory_info().rss)
    return time.process_time() - began, (most - before) / 1e6, curve


if __name__ == "__main__":
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as directory:
        metrics = Path(directory, "metrics.csv")
        write_many(metrics, rows)
        seconds, megabytes, curve = load(metrics)
        total = psutil.Process().memory_info().rss / 1e6
        size = metrics.stat().st_size / 1e6
        cost = f"{seconds:.2f} s of CPU time, {megabytes:.0f} MB more, {total:.0f} MB"
        print(f"{curve.rows:,} log points ({size:.0f} MB): {cost}")
