"""The docs' example: an agent in a file outside the package trains, packs and resumes by the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.project import ROOT, Project, events, rows, until, work

EXAMPLE = ROOT / "docs" / "examples" / "hill_climbing.py"


@pytest.fixture
def hill(project: Project) -> Project:
    """A project with the example, and a launcher of one process, so that all sessions are one pack."""
    shutil.copy(EXAMPLE, project.root)
    project.write("from rldsl import Local\n\none = Local(parallel=1)\n", "one.py")
    return project


def options(runs: str, frames: int = 20_000) -> list[object]:
    words = ["hill_climbing.py", "--on", "one.py", "--runs", runs, "--frames", frames, "--seeds", 2]
    return [*words, "--set", "budget.checkpoint_every=2000", "--set", f"budget.log_every={frames // 20}"]


def sessions(project: Project, runs: str) -> list[Path]:
    return sorted((project.root / runs).glob("*/*/seed-*"))


def test_it_imports_the_public_api_alone() -> None:
    lines = [line.split()[1] for line in EXAMPLE.read_text().splitlines() if line.startswith("from rldsl")]
    assert lines == ["rldsl", "rldsl.extend"]


def test_it_trains_in_a_pack_and_learns(hill: Project) -> None:
    done = hill.python(*options("runs"))
    assert done.returncode == 0, done.stdout + done.stderr
    for path in sessions(hill, "runs"):
        started = next(one for one in events(path) if one["event"] == "started")
        assert (started["members"], events(path)[-1]["event"]) == (2, "done")
        best = [float(row["best"]) for row in rows(path)]
        assert best == sorted(best) and best[-1] > 100, "CartPole falls after about 20 steps of a random policy"


def test_it_resumes_exactly_after_kill_9(hill: Project) -> None:
    assert hill.python(*options("whole")).returncode == 0
    running = hill.start(*options("broken"))
    path = until(lambda: next((one for one in sessions(hill, "broken") if len(rows(one)) >= 6), None))
    os.kill(json.loads((path / "alive.json").read_text())["pid"], signal.SIGKILL)
    running.communicate(timeout=60)
    assert events(path)[-1]["event"] != "done", "it was over before it could be killed"
    again = hill.python(*options("broken"))
    assert again.returncode == 0, again.stdout + again.stderr
    for ours, expected in zip(sessions(hill, "broken"), sessions(hill, "whole"), strict=True):
        assert [one["event"] for one in events(ours)].count("started") == 2
        assert work(ours) == work(expected)


def test_its_members_may_differ_and_are_the_same_alone(hill: Project) -> None:
    hill.write(
        """
        from hill_climbing import HillClimbing, climbing
        from rldsl import main

        if __name__ == "__main__":
            main(climbing, climbing.agent(HillClimbing(noise=1.0)).named("bold"))
        """
    )
    for only in ([], ["--only", "bold"]):
        words = ["exp.py", "--on", "one.py", "--runs", f"runs{len(only)}", "--frames", 8000, "--seeds", 1, *only]
        done = hill.python(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    (alone,) = sessions(hill, "runs2")
    pair = sessions(hill, "runs0")
    assert {next(one for one in events(path) if one["event"] == "started")["members"] for path in pair} == {2}
    (same,) = [path for path in pair if path.parent.name == alone.parent.name]
    assert work(same) == work(alone)
