"""Whatever is wrong is one sentence, and nothing is left behind."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from rldsl.cli.app import run_rldsl
from tests.project import Project, events, until

GOOD = """\
from rldsl import PPO, Classic, Random, experiment, main, uniform

cartpole = experiment("cartpole").env(Classic("CartPole-v1")).log_every(50)
random = cartpole.agent(Random()).frames(200)

if __name__ == "__main__":
    main(random)
"""


def refused(project: Project, ran: subprocess.CompletedProcess[str], sentence: str, *files: str) -> None:
    assert ran.returncode == 2
    assert ran.stderr == f"error: {sentence}\n"
    assert ran.stdout == ""
    assert project.files() == {"exp.py", *files}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("PPO(gama=0.9)", "exp.py:4: PPO has no field 'gama'; did you mean gamma?"),
        ("PPO(gamma='x')", "exp.py:4: PPO.gamma should be a valid number, got 'x'"),
        (
            "cartpole.agent(PPO()).search(gamma=uniform(0.9, 2))",
            "exp.py:4: agent.gamma should be less than or equal to 1, got 2.0",
        ),
        ("Classic('CartPol-v1')", "exp.py:4: Classic.id has no 'CartPol-v1'; did you mean CartPole-v1 or Acrobot-v1?"),
    ],
    ids=["typo", "type", "axis", "environment"],
)
@pytest.mark.parametrize("door", ["file", "rldsl"])
def test_a_mistake_in_the_file(project: Project, door: str, line: str, sentence: str) -> None:
    project.write(GOOD.replace("random = ", f"wrong = {line}\nrandom = "))
    ran = project.python("exp.py") if door == "file" else project.rldsl("train", "exp.py")
    refused(project, ran, sentence)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("from rldsl import PP0", "ImportError: cannot import name 'PP0' from 'rldsl'; did you mean PPO?"),
        ("agent = PP0()", "NameError: name 'PP0' is not defined; did you mean PPO?"),
        ("x = {}['y']", "KeyError: 'y'"),
        ("raise RuntimeError", "RuntimeError"),
        ("import helper", None),
    ],
)
def test_an_exception_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, sentence: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "exp.py").write_text(GOOD.replace("random = ", f"{line}\nrandom = "))
    (tmp_path / "helper.py").write_text("x = 1\ny = x / 0\n")
    assert run_rldsl(["plan", "exp.py"]) == 2
    expected = f"exp.py:4: {sentence}" if sentence else "helper.py:2: ZeroDivisionError: division by zero"
    assert capsys.readouterr().err == f"error: {expected}\n"


def test_two_experiments_of_one_name(project: Project) -> None:
    project.write(GOOD.replace("main(random)", "main(random, random.seeds(2))"))
    sentence = (
        "two experiments are called cartpole/random (exp.py:4 and exp.py:7); give one another name with .named(...)"
    )
    refused(project, project.python("exp.py"), sentence)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("main()", "main() needs at least one experiment: main(experiment, ...)"),
        ("main([random])", "main() takes experiments, got a list: unpack it, main(*...)"),
        ("main(PPO())", "main() takes experiments, got PPO: experiment(...).agent(...).env(...)"),
    ],
)
@pytest.mark.parametrize("door", ["file", "rldsl"])
def test_main_takes_experiments(project: Project, door: str, call: str, sentence: str) -> None:
    project.write(GOOD.replace("main(random)", call))
    ran = project.python("exp.py") if door == "file" else project.rldsl("plan", "exp.py")
    refused(project, ran, f"exp.py:7: {sentence}")


def test_an_experiment_that_is_not_complete(project: Project) -> None:
    project.write(GOOD.replace("main(random)", "main(cartpole)"))
    sentence = "exp.py:3: experiment 'cartpole' is not complete: it needs .agent(...) and .frames(...)"
    refused(project, project.python("exp.py"), sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--frames", "300", "--set", "frames=400"],
            "--set frames=400 and --frames 300 disagree about budget.frames",
        ),
        (
            ["--set", "num_envs=2", "--gin", "Classic.num_envs = 4"],
            "--set num_envs=2 and --gin 'Classic.num_envs = 4' disagree about env.num_envs",
        ),
        (["--set", "env.num_env=2"], "--set env.num_env=2: env.num_env names no field; did you mean env.num_envs?"),
        (
            ["--set", "num_envs=2.5"],
            "--set num_envs=2.5: cartpole/random.env.num_envs should be a whole number, got 2.5",
        ),
        (
            ["--set", "compute.device=gpu"],
            "--set compute.device=gpu: cartpole/random.compute.device should be auto, cpu, cuda or cuda:N, got 'gpu'",
        ),
        (["--set", "target=high"], "--set target=high: cartpole/random.target should be a number, got 'high'"),
        (["--seeds", "a,b"], "--seeds should be a whole number such as 4 or 3,5,7, got 'a'"),
        (
            ["--gin", "Classic.num_envs = foo"],
            "--gin 'Classic.num_envs = foo': not valid gin: foo is not a value; text needs quotes (line 1)",
        ),
        (["--frames", "lots"], "--frames should be a whole number such as 200000 or 2e5, got 'lots'"),
        (
            ["--seeds", "99999999999"],
            "cartpole/random: 99,999,999,999 seeds are more than the 1,000,000 that are possible",
        ),
        (["--gin", "PPO.gamma = 0.5"], "--gin 'PPO.gamma = 0.5': PPO.gamma is used by nothing in the plan"),
        (["--gin-file", "no.gin"], "--gin-file no.gin: cannot read no.gin: No such file or directory"),
        (["--plan", "no.json"], "cannot read the plan no.json: no such file or directory"),
        (["--only", "ppo"], "--only ppo: there is no such experiment; valid: cartpole/random"),
        (["--on", "no.py"], "--on no.py: there is no such file"),
        (["--on", "locl"], "--on locl: there is no such launcher; did you mean local?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_in_the_command(project: Project, options: list[str], sentence: str) -> None:
    project.write(GOOD)
    refused(project, project.python("exp.py", *options), sentence)


def test_an_unknown_option_or_command(project: Project) -> None:
    project.write(GOOD)
    for arguments in (["--fames", "300"], ["trian"]):
        ran = project.python("exp.py", *arguments)
        assert ran.returncode == 2
        assert "No such" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert project.files() == {"exp.py"}


def test_a_file_that_is_not_there(project: Project) -> None:
    ran = project.rldsl("train", "nope.py")
    assert (ran.returncode, ran.stderr) == (2, "error: there is no file nope.py\n")
    assert project.files() == set()


def test_a_file_that_declares_nothing(project: Project) -> None:
    project.write("x = 1\n")
    refused(
        project, project.rldsl("plan", "exp.py"), "exp.py declares no experiment: its last line should be main(...)"
    )


@pytest.mark.parametrize("command", ["train", "resume"])
def test_a_file_in_the_way_of_the_run_directory(project: Project, command: str) -> None:
    project.write(GOOD)
    project.runs.write_text("mine")
    ran = project.python("exp.py", command)
    if command == "train":
        refused(project, ran, "cannot write runs: not a directory", "runs")
    assert project.runs.read_text() == "mine"


def test_a_file_in_the_way_of_a_session_stops_the_others_too(project: Project) -> None:
    both = GOOD.replace("main(random)", 'main(random.env(Classic("Acrobot-v1")).named("other"), random)')
    project.write(both.replace("frames(200)", "frames(1e8)"))
    project.runs.mkdir()
    (project.runs / "cartpole-v1").write_text("mine")
    ran = project.python("exp.py")
    assert ran.returncode == 2
    assert re.fullmatch(r"error: cannot write .*/runs/cartpole-v1/random-\w+/seed-0: not a directory\n", ran.stderr)
    assert (project.runs / "cartpole-v1").read_text() == "mine"
    until(lambda: not list(project.runs.glob("**/alive.json")))
    assert all(events(path)[-1]["event"] in ("created", "stopped") for path in project.sessions)


def test_an_environment_that_gymnasium_does_not_know_fails_in_one_sentence(project: Project) -> None:
    project.write(GOOD.replace('Classic("CartPole-v1")', 'Gym("Nowhere-v0")').replace("Classic", "Gym"))
    ran = project.python("exp.py")
    assert ran.returncode == 1
    assert "Nowhere" in ran.stdout
    assert "1 session: 1 failed" in ran.stdout


@pytest.mark.parametrize("command", ["plan", "train"])
def test_an_environment_of_a_module_that_does_not_exist_is_refused_before_training(
    project: Project, command: str
) -> None:
    project.write(GOOD.replace('Classic("CartPole-v1")', 'Gym("nosuch:Env")').replace("Classic", "Gym"))
    ran = project.python("exp.py", command)
    lacks = "there is no module nosuch, which nosuch:Env needs: install it or put it beside the experiment file"
    assert (ran.returncode, ran.stderr) == (2, f"error: cartpole/random cannot run here: {lacks}\n")
    assert project.files() == {"exp.py"}


def test_garbage_in_a_journal_is_counted_and_training_goes_on(project: Project) -> None:
    project.write(GOOD)
    assert project.python("exp.py").returncode == 0
    journal = project.session / "journal.jsonl"
    story = [line for line in journal.read_text().splitlines() if '"done"' not in line]
    journal.write_bytes(b"\n".join([*(line.encode() for line in story), b"\xff\x00 garbage", b"[1, 2]", b"{}"]) + b"\n")
    status = project.python("exp.py", "status").stdout
    assert "resume" in status
    assert "3 unreadable lines in the journal" in status

    again = project.python("exp.py")
    assert again.returncode == 0, again.stdout
    (told,) = json.loads(project.python("exp.py", "status", "--json").stdout)
    assert (told["state"], told["unreadable"]) == ("done", 3)
