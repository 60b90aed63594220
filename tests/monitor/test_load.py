"""The figures of the monitor under load, small; `python -m tests.monitor.load` takes them at full size."""

from __future__ import annotations

from pathlib import Path

from tests.monitor.load import measure


def test_it_is_live_and_light(tmp_path: Path) -> None:
    """Bounds are generous: the machine may be busy. At full size they are 1.5 s, 5%, 20% and 2 s."""
    figures = measure(tmp_path, sessions=300, writers=5, seconds=4.0)
    print(f"\n{figures}")
    assert figures.first_paint_without_waiting < 6
    assert figures.idle < 0.15
    assert figures.busy < 0.4
    assert figures.slowest_update < 20
    assert figures.megabytes_at_the_end < 300
