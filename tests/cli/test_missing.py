"""What this machine lacks to run an environment is said before anything is queued."""

from __future__ import annotations

import json

import pytest

from tests.project import Project

EXPERIMENT = """
    from pathlib import Path
    from typing import ClassVar, Literal

    from rldsl import Classic, Environment, Random, experiment, main


    class Robot(Environment, frozen=True):
        kind: Literal["robot"] = "robot"
        implementation: ClassVar[str] = "rldsl.envs.make:classic"
        id: str = "CartPole-v1"

        def missing(self):
            return None if Path("models").exists() else "its models are not in models; touch models brings them"


    robot = experiment("robot").log_every(50).agent(Random()).frames(200)

    if __name__ == "__main__":
        main(robot.env(Robot()))
"""
SENTENCE = "error: robot/random cannot run here: its models are not in models; touch models brings them\n"


@pytest.fixture
def robots(project: Project) -> Project:
    project.write(EXPERIMENT)
    return project


def test_training_is_refused_and_nothing_is_left_behind(robots: Project) -> None:
    ran = robots.python("exp.py", "train")
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", SENTENCE)
    assert robots.files() == {"exp.py"}


def test_a_plan_is_shown_and_written_for_a_place_that_has_it_but_fails_here(robots: Project) -> None:
    ran = robots.python("exp.py", "plan", "--out", "plan.json")
    assert (ran.returncode, ran.stderr) == (2, SENTENCE)
    assert "1 trial, 1 session: 1 new" in ran.stdout and "written to plan.json" in ran.stdout
    ran = robots.python("exp.py", "plan", "--json")
    assert (ran.returncode, ran.stderr) == (2, SENTENCE)
    assert [one["state"] for one in json.loads(ran.stdout)["trials"][0]["sessions"]] == ["new"]


def test_what_is_done_lacks_nothing(robots: Project) -> None:
    models = robots.root / "models"
    models.touch()
    assert robots.python("exp.py", "plan").returncode == 0
    assert robots.python("exp.py", "train").returncode == 0
    models.unlink()
    ran = robots.python("exp.py", "plan")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1 done" in ran.stdout
    assert robots.python("exp.py", "train").returncode == 0
