"""The command `compare`: sources, commits, exit codes and output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rldsl.cli.app import run_rldsl
from rldsl.report.result import write_result
from rldsl.report.run_result import result_of
from tests.report.finished import cartpole_plan, finish, rising

GOOD, BAD = (100.0, 101.0, 102.0, 103.0), (50.0, 51.0, 52.0, 53.0)
EXPERIMENT = """
from rldsl import PPO, Classic, experiment, main

ppo = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(PPO()).frames(10_000)

if __name__ == "__main__":
    main(ppo.log_every(50).seeds(4).target(450))
"""


def finished(runs: Path, scores: Sequence[float]) -> None:
    """Sessions of cartpole/ppo with these scores."""
    finish(runs, cartpole_plan(len(scores)), [rising(score) for score in scores])


def add_result(folder: Path, scores: Sequence[float], runs: Path) -> None:
    write_result(folder / "classic", result_of(finish(runs, cartpole_plan(len(scores)), list(map(rising, scores)))))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    return run_rldsl(["compare", *arguments])


def data(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_run_directories(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished(here / "before", GOOD)
    finished(here / "after", BAD)
    assert run("before", "after") == 1
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    assert ["cartpole/ppo", "A", "4", "101.5", "99.4", "..", "103.6", "100.0", "101.0", "102.0", "103.0"] in lines
    assert next(line for line in lines if line[:1] == ["worse"])[1:5] == ["B", "-", "A", "-50.0"]
    assert "P(B > A) 0.00 (0.00 .. 0.42)" in printed
    assert "━━ A before 101.5   ━━ B after 51.5" in printed
    assert run("after", "before") == 0, "better is no failure"
    assert run("before", "before") == 0


def test_experiments_are_named_in_the_run_directory_a_path_or_a_file(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished(here / "runs", GOOD)
    add_result(here / "results", BAD, here / "elsewhere")
    (here / "cartpole.py").write_text(EXPERIMENT)
    file = here / "results" / "classic" / "cartpole-ppo.json"
    for a in ("cartpole/ppo", "ppo", "runs", "runs:ppo", "cartpole.py", "cartpole.py:ppo"):
        for b in ("results", "results:cartpole/ppo", "results/classic", str(file)):
            assert run(a, b, "--json") == 1
            (one,) = data(capsys)["comparisons"]
            assert (one["a"]["score"], one["b"]["score"]) == (101.5, 51.5)
            assert one["verdict"] == "worse"


def test_a_results_folder_at_commits(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(here, "init", "-q")
    for number, scores in enumerate((GOOD, BAD)):
        add_result(here / "results", scores, here / f"runs-{number}")
        git(here, "add", "results")
        git(here, "commit", "-q", "-m", "results")
    (here / "results" / "speed.json").write_text("{}")
    add_result(here / "results", (10.0, 11.0, 12.0), here / "runs-2")
    for arguments, scores in (
        (["results", "--at", "HEAD~1"], (101.5, 11.0)),
        (["results", "--at", "HEAD~1", "--at", "HEAD"], (101.5, 51.5)),
        (["cartpole/ppo", "--runs", "results", "--at", "HEAD"], (51.5, 11.0)),
        (["results/classic/cartpole-ppo.json", "results", "--at", "HEAD"], (51.5, 11.0)),
    ):
        assert run(*arguments, "--json") == 1
        (one,) = data(capsys)["comparisons"]
        assert (one["a"]["score"], one["b"]["score"]) == pytest.approx(scores)
    assert run("results", "--at", "HEAD~1") == 1
    assert capsys.readouterr().out.startswith("A: results at HEAD~1\nB: results\n")


def test_too_few_seeds_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished(here / "before", GOOD)
    finished(here / "after", BAD[:1])
    assert run("before", "after") == 0
    assert "cartpole/ppo: B has 1 seed: too few for an interval; train 4 or more" in capsys.readouterr().out


def test_fail_below_replaces_the_interval(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished(here / "before", GOOD)
    finished(here / "after", BAD)
    assert run("before", "after", "--fail-below", "-60") == 0
    assert run("before", "after", "--fail-below", "-40") == 1
    assert "B - A is below -40: cartpole/ppo" in capsys.readouterr().out
    assert run("after", "before", "--fail-below", "60", "--json") == 1
    assert data(capsys)["failed"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs"], "compare needs A and B, or A and --at REV"),
        (["runs", "nothing"], "runs has no experiment nothing; valid: cartpole/ppo"),
        (["runs", "runs:sac"], "runs has no experiment sac"),
        (["runs", "empty"], "empty contains neither results nor sessions"),
        (["runs", "nothing.py"], "nothing.py"),
        (["runs", "nothing.json"], "nothing.json does not exist"),
        (["a", "b", "--runs", "nowhere"], "a is neither a path nor an experiment in nowhere"),
        (["runs", "--at", "v1"], "--at v1: there is no such commit"),
        (["runs", "--at", "a", "--at", "b", "--at", "c"], "--at is given at most twice"),
        (["runs", "old"], "old/classic/x.json is not a result"),
    ],
)
def test_mistakes_are_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    finished(here / "runs", GOOD)
    (here / "empty").mkdir()
    (here / "old" / "classic").mkdir(parents=True)
    (here / "old" / "classic" / "x.json").write_text('{"score": 1}')
    assert run(*arguments) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert message in sentence


def test_a_folder_that_a_commit_does_not_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(here, "init", "-q")
    git(here, "commit", "-q", "--allow-empty", "-m", "nothing")
    add_result(here / "results", GOOD, here / "runs")
    assert run("results", "--at", "HEAD") == 2
    assert capsys.readouterr().err == "error: results does not exist at HEAD\n"
