"""The commands, by both of their doors, and a frozen plan that outlives its file."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import pytest

import rldsl
from rldsl.cli.run import command, follow_up_commands
from tests.project import CARTPOLE, Project

EXPERIMENT = """
    from rldsl import PPO, Classic, Random, experiment, grid, main, uniform

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(100)
    random = cartpole.agent(Random()).frames(400)
    more = random.search(num_envs=grid(1, 2)).seeds(2)
    ppo = cartpole.agent(PPO(rollout=64)).frames(1e5)

    if __name__ == "__main__":
        main(random, more, ppo, ppo.search(gamma=uniform(0.9, 0.99)).random(2))
"""


def test_both_doors_lead_to_the_same_plan(project: Project) -> None:
    project.write(EXPERIMENT)
    one, other = project.python("exp.py", "plan"), project.rldsl("plan", "exp.py")
    assert one.stdout == other.stdout
    assert one.returncode == other.returncode == 0
    lines = one.stdout.splitlines()
    assert lines[0] == "cartpole/random  1 trial x 1 seed x 400 frames"
    assert lines[1] == "cartpole/random-grid  2 trials of a grid x 2 seeds x 400 frames"
    assert lines[3] == "cartpole/ppo-search  2 trials by random x 1 seed x 100k frames"
    header = next(line for line in lines if line.startswith("experiment "))
    assert header.split() == [
        "experiment",
        "session",
        "env.num_envs",
        "gamma",
        "seed",
        "state",
        "frames",
        "time",
        "left",
    ]
    assert lines[-1] == "6 trials, 8 sessions: 8 new; 302k frames to go"
    assert project.files() == {"exp.py"}


def test_the_json_of_a_plan_is_one_document_with_everything(project: Project) -> None:
    project.write(EXPERIMENT)
    document = json.loads(project.python("exp.py", "plan", "--json", "--only", "random-grid").stdout)
    (part,) = document["experiments"]
    assert (part["name"], part["trials"], part["seeds"]) == ("cartpole/random-grid", 2, 2)
    assert [one["differs"] for one in document["trials"]] == [{"env.num_envs": 1}, {"env.num_envs": 2}]
    assert document["trials"][1]["spec"]["env"] == {"kind": "classic", "id": "CartPole-v1", "num_envs": 2}
    assert [one["state"] for trial in document["trials"] for one in trial["sessions"]] == ["new"] * 4


def test_help(project: Project) -> None:
    project.write(EXPERIMENT)
    for ran in (project.python("exp.py", "--help"), project.rldsl("--help")):
        assert ran.returncode == 0
        assert "Usage:" in ran.stdout
        assert all(word in ran.stdout for word in ("train", "plan", "search", "status", "stop", "resume"))
    assert "schema" in ran.stdout


def test_help_of_a_command(project: Project) -> None:
    project.write(EXPERIMENT)
    for ran in (project.python("exp.py", "plan", "--help"), project.rldsl("plan", "--help")):
        assert ran.returncode == 0
        assert all(word in ran.stdout for word in ("--only", "--set", "--gin-file", "--out", "--json"))
    assert "An experiment file" in ran.stdout


def test_flags_are_shown_without_a_type(project: Project) -> None:
    assert "bool" not in project.rldsl("--help").stdout + project.rldsl("plan", "--help").stdout


def test_version(project: Project) -> None:
    assert project.rldsl("--version").stdout == f"rldsl {version('rldsl')}\n" == f"rldsl {rldsl.__version__}\n"


def test_printed_commands_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["exp.py", "train", "--gin", "PPO.gamma = 0.9", "--on", "slurm"])
    assert command() == "python exp.py train --gin 'PPO.gamma = 0.9' --on slurm"
    enjoy, report = follow_up_commands(committed=True)
    assert enjoy == ["python", "exp.py", "enjoy", "--gin", "PPO.gamma = 0.9"] and report[2] == "report"
    monkeypatch.setattr(sys, "argv", ["/bin/rldsl", "train", "exp.py", "--only", "ppo"])
    assert follow_up_commands(committed=False) == [
        ["rldsl", name, "exp.py", "--only", "ppo"] for name in ("enjoy", "plot")
    ]


def test_the_schema_is_json_and_knows_the_kinds(project: Project) -> None:
    ran = project.rldsl("schema")
    assert ran.returncode == 0
    schema = json.loads(ran.stdout)
    assert schema["title"] == "Experiment"
    for word in ("ppo", "mujoco", "linear", "asha", "Entropy coefficient"):
        assert f'"{word}"' in ran.stdout


def test_a_frozen_plan_runs_as_it_is_even_if_the_file_has_changed(project: Project) -> None:
    project.write(EXPERIMENT)
    written = project.python("exp.py", "plan", "--only", "cartpole/random", "--set", "num_envs=2", "--out", "f.json")
    assert "written to f.json; `train --plan f.json` runs exactly this" in written.stdout
    (trial,) = json.loads((project.root / "f.json").read_text())["trials"]
    project.write(EXPERIMENT.replace("frames(400)", "frames(800)").replace('"cartpole"', '"renamed"'))

    refused = project.python("exp.py", "train", "--plan", "f.json", "--frames", "300")
    assert refused.returncode == 2
    assert "error: --plan runs a plan exactly as it is: --frames cannot change it" in refused.stderr
    assert not project.runs.exists()

    ran = project.python("exp.py", "train", "--plan", "f.json")
    assert ran.returncode == 0, ran.stderr
    record = json.loads((project.session / "session.json").read_text())
    assert record["trial_id"] == trial["id"]
    assert record["trial"] == trial["spec"]
    assert record["frames"] == 400
    assert record["experiment"] == "cartpole/random"
    assert record["overrides"][0]["path"] == "env.num_envs"


def test_a_plan_that_was_tampered_with_is_refused(project: Project) -> None:
    project.write(EXPERIMENT)
    project.python("exp.py", "plan", "--only", "cartpole/random", "--out", "f.json")
    path = project.root / "f.json"
    path.write_text(path.read_text().replace('"num_envs": 4', '"num_envs": 8'))
    ran = project.python("exp.py", "train", "--plan", "f.json")
    assert ran.returncode == 2
    assert "was changed by hand" in ran.stderr
    assert not project.runs.exists()


def test_a_search_is_not_trained_by_mistake(project: Project) -> None:
    project.write(EXPERIMENT)
    ran = project.python("exp.py", "train", "--only", "ppo-search")
    assert ran.returncode == 2
    assert ran.stderr == "error: cartpole/ppo-search is a search: use the command search, or see it with plan\n"


def test_a_search_runs_on_seeds_of_its_own_and_names_the_best(project: Project) -> None:
    drawn = EXPERIMENT.replace("ppo.search(gamma=uniform(0.9, 0.99))", "random.search(num_envs=choice(1, 2))")
    project.write(drawn.replace("uniform", "choice"))
    ran = project.python("exp.py", "search")
    assert ran.returncode == 0, ran.stderr
    assert "cartpole/random-search  2 trials: 2 done" in ran.stdout
    assert {path.name for path in project.sessions} == {"seed-1000000"}


def test_the_example_of_the_house_plans(project: Project) -> None:
    ran = project.python(CARTPOLE, "plan", "--runs", project.runs)
    assert ran.returncode == 0, ran.stderr
    assert "cartpole/random" in ran.stdout
