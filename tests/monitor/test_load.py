"""The monitor under a small load; `python -m tests.monitor.load` measures it at full size."""

from __future__ import annotations

from pathlib import Path

from tests.monitor.load import measure


def test_cpu_time_latency_and_memory(tmp_path: Path) -> None:
    """The bounds are generous, since the machine may be busy. At full size they are 1.5 s, 5%, 20% and 2 s."""
    measured = measure(tmp_path, sessions=300, writers=5, seconds=4.0)
    print(f"\n{measured}")
    assert measured.first_paint_without_waiting < 6
    assert measured.idle < 0.15
    assert measured.busy < 0.4
    assert measured.slowest_update < 20
    assert measured.megabytes_at_the_end < 300
