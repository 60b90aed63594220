"""The commands push, pull and list --hub: what they print, and errors in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rldsl.cli.app import run_rldsl
from tests.hub.loopback import Hub
from tests.hub.sessions import finished

NAME = "me/results"


@pytest.fixture
def project(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_REPO", NAME)
    finished(tmp_path / "runs")
    return tmp_path


def run(*arguments: str) -> int:
    return run_rldsl(list(arguments))


def test_push_list_and_pull(hub: Hub, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("push") == 0
    assert capsys.readouterr().out.splitlines() == [
        "pushed 24 of 24 files",
        f"2 sessions pushed: {hub.url}/datasets/{NAME}",
    ]
    assert run("list", "--hub") == 0
    header, first, second, total = capsys.readouterr().out.splitlines()
    assert header.split() == ["experiment", "session", "state", "frames", "score", "target", "time", "MB"]
    assert first.split()[2:6] == ["done", "10k", "100.0", "450"] and len(first) <= 80
    assert second.split()[4] == "120.0" and total.startswith("2 sessions, ")
    assert run("list", "--hub", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["experiment"], row["seed"], row["score"]) for row in rows] == [
        ("cartpole/ppo", 0, 100.0),
        ("cartpole/ppo", 1, 120.0),
    ]
    assert run("pull", rows[1]["session"], "--runs", "elsewhere") == 0
    assert capsys.readouterr().out.splitlines() == ["pulled 12 of 12 files", "1 session pulled: elsewhere"]
    assert [path.name for path in project.glob("elsewhere/*/*/seed-*")] == ["seed-1"]


def test_one_session_is_pushed_by_its_id(hub: Hub, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = project.glob("runs/*/*/seed-1")
    assert run("push", f"{path.parent.name.rpartition('-')[2]}-s1", "--public") == 0
    assert "1 session pushed" in capsys.readouterr().out
    assert not hub.repo(NAME).private
    assert not [name for name in hub.repo(NAME).files if "/seed-0/" in name]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["push", "nothing"], "no session in runs matches 'nothing'"),
        (["push", "--repo", "results"], "'results' is not the name of a repository: it should be OWNER/NAME"),
        (["pull", "--repo", "me/nothing"], "there is no dataset repository me/nothing, or it is private"),
        (["pull", "cartpole/pppo"], "the repository has no session cartpole/pppo; did you mean cartpole/ppo"),
        (["list", "--hub", "--repo", "a/b/c"], "'a/b/c' is not the name of a repository"),
    ],
)
def test_mistakes_are_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert run("push") == 0
    capsys.readouterr()
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and sentence in error and len(error.splitlines()) == 1


def test_a_repository_must_be_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HF_REPO")
    for command in (["push"], ["pull"], ["list", "--hub"], ["graduate", "me/public"]):
        assert run(*command) == 2
        assert "which repository? --repo OWNER/NAME, or the variable HF_REPO" in capsys.readouterr().err


def test_refused_files_are_listed_and_the_exit_code_says_so(
    hub: Hub, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = project.glob("runs/*/*/seed-0/log.txt")
    log.write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    assert run("push") == 1
    said = capsys.readouterr().out
    assert "log.txt: it contains what looks like a private key" in said and "2 sessions pushed" in said
    assert run("push") == 1
    assert "what looks like a private key" in capsys.readouterr().out
