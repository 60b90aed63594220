"""What a command is about: experiments with options, a saved plan, sessions by their ids, sessions with overrides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rldsl.cli.options import Choice
from rldsl.cli.sessions import find_sessions
from rldsl.plan.plan import Row
from tests.cli.conftest import EXPERIMENT, OVERRIDES, Trained
from tests.project import ROOT, Project


@pytest.fixture
def id(trained: Trained) -> str:
    return trained.project.sessions[0].parent.name[-12:]


def test_plain_commands_find_sessions_with_overrides(trained: Trained, id: str) -> None:
    shown = trained.project.python("exp.py", "status").stdout
    assert shown.count(id) == 2 and "some were trained with --set env.num_envs=2, --frames 2e3" in shown
    assert "4 sessions: 2 new, 2 done" in shown
    played = trained.project.python("exp.py", "enjoy", "--episodes", "1")
    assert "trained with --set env.num_envs=2, --frames 2e3" in played.stdout and "mean return" in played.stdout
    reported = trained.project.python("exp.py", "report").stdout
    assert "cartpole/random --set env.num_envs=2 --frames 2e3" in reported and "missing: cartpole/random" in reported
    narrowed = trained.project.python("exp.py", "status", "--frames", "5e3").stdout
    assert id not in narrowed, "options mean exactly these settings"


def test_plain_resume_finds_sessions_with_overrides(project: Project) -> None:
    project.write(EXPERIMENT)
    assert project.python("exp.py", "train", "--frames", "2e3", "--seeds", "3").returncode == 0
    (id,) = {path.parent.name[-12:] for path in project.sessions}
    for path in project.sessions:
        journal = path / "journal.jsonl"  # as if the machine had lost power
        journal.write_text("".join(line for line in journal.open() if '"event": "done"' not in line))
    assert "5 sessions: 2 new, 3 resume" in project.python("exp.py", "status").stdout
    resumed = project.python("exp.py", "resume")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert [resumed.stdout.count(f"{id}-s{seed}") for seed in range(3)] == [1, 1, 1]
    assert "5 sessions: 2 new, 3 done" in resumed.stdout
    assert project.python("exp.py", "status", "--frames", "2e3").stdout.count(id) == 2, "options mean exactly these"
    assert project.python("exp.py", "plan", "--frames", "2e3", "--out", "plan.json").returncode == 0
    for options in (("--frames", "2e3", "--seed", "2"), ("--seed", "2")):
        played = project.python("exp.py", "enjoy", "--episodes", "1", "--json", *options)
        assert json.loads(played.stdout)["session"] == f"{id}-s2"
    assert len(find_sessions(str(project.root / "exp.py"), (), project.runs)) == 3
    assert len(find_sessions(str(project.root / "plan.json"), (), project.runs)) == 2


def started(project: Project, file: str, **options: Any) -> set[str]:
    """Starts the sessions of a file with options, as far as the run directory tells."""
    plan = Choice(project.root / file, **options).selected(project.runs).plan
    sessions = [session for row in plan.rows() for session in row.sessions()]
    for session in sessions:
        directory = project.runs / session.directory
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "session.json").write_text(json.dumps(session.record()))
    return {session.id for session in sessions}


def found(project: Project, file: str, only: str) -> list[Row]:
    """The trials with overrides that plain commands find."""
    plan = Choice(project.root / file, only=[only]).selected(project.runs, overridden=True).plan
    return [row for row in plan.rows() if row.overrides]


def ids(rows: list[Row]) -> set[str]:
    return {session.id for row in rows for session in row.sessions()}


DECLARED = """
    from rldsl import A2C, Classic, experiment, grid, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).target(400)
    a2c = cartpole.agent(A2C(lr=1e-3, critic_lr=0.1)).frames(2e4)
    searched = a2c.search(lr=grid(0.1, 0.2), lam=grid(0.5, 0.6)).named("cartpole/grid")

    if __name__ == "__main__":
        main(a2c, searched)
"""


def test_sessions_with_overrides_belong_to_the_file_that_declares_the_rest(project: Project) -> None:
    project.write(DECLARED, "mine.py")
    project.write(DECLARED.replace("lr=1e-3", "lr=1e-4, gamma=0.9"), "other.py")
    project.write("A2C.gamma = 0.5\n", "mine.gin")
    given: list[dict[str, Any]] = [
        {"frames": "1e3"},
        {"seeds": "3"},
        {"seed": [7]},
        {"set": ["optimizer=adam", "critic_lr=null"], "frames": "2e3"},
        {"gin_file": [project.root / "mine.gin"]},
        {"set": ["target.score=300", 'evaluation={"every": 1000}']},
    ]
    plain = started(project, "mine.py", only=["a2c"])
    mine = set().union(*(started(project, "mine.py", only=["a2c"], **options) for options in given))
    assert len(mine) == 8 and ids(found(project, "mine.py", "a2c")) == mine - plain
    assert found(project, "other.py", "a2c") == []
    started(project, "other.py", only=["a2c"], set=["env.num_envs=2"])
    assert ids(found(project, "mine.py", "a2c")) == mine - plain

    points = started(project, "mine.py", only=["grid"], frames="1e3")
    assert len(points) == 4 and ids(found(project, "mine.py", "grid")) == points
    without = started(project, "mine.py", only=["grid"], set=["search=null"], frames="3e3")
    assert ids(found(project, "mine.py", "grid")) == points | without
    assert ids(found(project, "other.py", "grid")) == set(), "lr is an axis, gamma is not"

    project.write(DECLARED.replace(".frames(2e4)", '.frames(2e4).target(350).compute(compile="off")'), "edited.py")
    rows = found(project, "edited.py", "a2c")
    assert ids(rows) == mine - plain, "neither is part of the identity"
    assert {row.trial.compute.compile for row in rows} == {"off"}
    assert {row.target.score for row in rows if row.target} == {300, 350}


def test_commands_take_a_saved_plan(trained: Trained, id: str) -> None:
    project = trained.project
    assert project.python("exp.py", "plan", *OVERRIDES, "--out", "plan.json").returncode == 0
    for command in (("status",), ("plan",), ("logs",), ("enjoy", "--episodes", "1"), ("report",), ("train",)):
        ran = project.python("exp.py", *command, "--plan", "plan.json")
        rejected = command == ("report",)  # the project is no git repository
        assert ran.returncode == int(rejected), (command, ran.stderr)
        assert ("commit the file before training" in ran.stdout) == rejected
    assert project.rldsl("status", "plan.json").stdout.count(id) == 2
    refused = project.python("exp.py", "status", "--plan", "plan.json", "--frames", "5")
    assert refused.returncode == 2 and "--frames cannot change it" in refused.stderr


def test_commands_take_sessions_by_id(trained: Trained, id: str) -> None:
    project = trained.project
    for command in (
        ("status",),
        ("plan",),
        ("logs",),
        ("enjoy", "--episodes", "1"),
        ("train",),
        ("resume",),
        ("stop",),
    ):
        name, *options = command
        ran = project.rldsl(name, f"{id}-s1", *options)
        assert ran.returncode == 0, (command, ran.stderr)
        ran = project.python("exp.py", *command, "--session", f"{id}-s1")
        assert ran.returncode == 0 or name == "stop", (command, ran.stderr)
    journal = project.rldsl("logs", f"{id}-s1", "-n", "1").stdout.splitlines()
    assert journal[0] == "log.txt is empty; the journal:" and " done " in journal[1] and len(journal) == 2
    assert "1 session: 1 done" in project.rldsl("status", f"{id}-s1").stdout
    assert "2 sessions: 2 done" in project.rldsl("status", id).stdout
    unknown = project.rldsl("status", "0123456789ab-s0")
    assert unknown.returncode == 2 and "no session in runs matches" in unknown.stderr


def test_a_session_of_the_users_own_class_needs_the_file(project: Project) -> None:
    project.write((ROOT / "docs" / "examples" / "hill_climbing.py").read_text(), "hill_climbing.py")
    assert project.python("hill_climbing.py", "--frames", "2000", "--seeds", "1").returncode == 0
    id = f"{project.session.parent.name[-12:]}-s0"
    refused = project.rldsl("enjoy", id)
    assert refused.returncode == 2 and f"give its experiment file as well: FILE --session {id}" in refused.stderr
    refused = project.rldsl("export", id, "policy.pt2")
    assert refused.returncode == 2 and "give its experiment file as well: --file FILE" in refused.stderr
    assert project.rldsl("enjoy", "hill_climbing.py", "--session", id, "--episodes", "1").returncode == 0
    (project.session / "log.txt").write_text("one\ntwo\nthree\n")
    assert project.python("hill_climbing.py", "logs", "-n", "2", "--follow").stdout == "two\nthree\n"


def test_seeds_and_patterns(trained: Trained) -> None:
    def seeds(*options: str) -> list[int]:
        ran = trained.project.python("exp.py", "plan", "--json", *options)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)["trials"][0]["seeds"]

    assert seeds("--seed", "3") == [3]
    assert seeds("--seeds", "3,5,7") == [3, 5, 7]
    assert seeds("--seeds", "3") == [0, 1, 2]
    assert seeds("--seed", "1", "--only", "ran*") == [1]
    both = trained.project.python("exp.py", "plan", "--seed", "3", "--seeds", "2")
    assert both.returncode == 2 and "exclude each other" in both.stderr
    nothing = trained.project.python("exp.py", "plan", "--only", "ppo*")
    assert nothing.returncode == 2 and "there is no such experiment" in nothing.stderr
