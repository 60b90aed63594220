"""The ablation's own arithmetic; the trainings themselves are `python -m benchmarks.ablation`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import ablation, ours


def run(work: str, side: str, fps: float) -> dict[str, Any]:
    return {"work": work, "side": side, "round": 0, "frames": 1000, "seconds": 1000 / fps, "fps": fps}


def test_the_ratio_is_that_of_the_medians() -> None:
    default, torch = ([run("sac-pendulum", side, fps) for fps in speeds] for side, speeds in SPEEDS.items())
    table = ablation.medians([*default, *torch])
    assert table == {"sac-pendulum": pytest.approx({"default": 300, "torch": 200, "ratio": 1.5})}
    assert ablation.markdown(table).splitlines()[-1] == "| sac-pendulum | 300 | 200 | 1.50 |"


SPEEDS = {"default": [100, 300, 900], "torch": [200, 150, 800]}


def test_every_workload_is_measured() -> None:
    assert set(ablation.WORKS) == set(ours.WORKS)
