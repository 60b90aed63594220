"""The speed of environments beside Gymnasium's is measured and kept; the figures are for a quiet machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.timeout(300)
def test_each_environment_is_measured_on_both_sides(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.environments", "--rounds", "1", "--seconds", "0.05"]
    said = subprocess.run(
        [*command, "--json", str(tmp_path / "figures.json")], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [one["env"] for one in figures] == ["Hopper-v5", "HalfCheetah-v5", "Humanoid-v5", "Pong"]
    assert all(one["ratio"] == pytest.approx(one["ours"] / one["gymnasium"]) and one["ours"] > 0 for one in figures)
    assert said.count("steps a second") == 4
