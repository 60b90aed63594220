"""What passes the audit is copied from a development repository to a public one, in one commit with its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.cli.app import run_rldsl
from rldsl.hub.index import read_index
from tests.hub.loopback import Hub
from tests.hub.sessions import finished, plan_of
from tests.report.finished import PROVENANCE, finish, rising

DEV, PUBLIC = "me/dev", "me/benchmark"
EXPERIMENT = """
from rldsl import PPO, Classic, experiment, main

ppo = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(PPO()).frames(10_000)
ppo = ppo.log_every(50).seeds(2).target(450)
main(ppo)
"""


@pytest.fixture
def project(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose development repository has an accepted trial and a rejected one."""
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "runs")
    dirty = {**PROVENANCE, "code": {"sha": "0123456789abcdef", "dirty": True}}
    finish(tmp_path / "runs", plan_of(0.9), [rising(90.0), rising(91.0)], dirty)
    assert run_rldsl(["push", "--repo", DEV]) == 0
    return tmp_path


def test_what_the_audit_accepts_is_copied_in_one_commit(
    hub: Hub, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "experiments").mkdir()
    (project / "experiments" / "cartpole.py").write_text(EXPERIMENT)
    assert run_rldsl(["graduate", PUBLIC, "--repo", DEV]) == 1
    said = capsys.readouterr().out
    assert "1 result with 2 sessions copied" in said
    assert "rejected cartpole/ppo" in said
    public, dev = hub.repo(PUBLIC), hub.repo(DEV)
    assert not public.private and len(public.commits) == 2
    rows = read_index(public.files["index.jsonl"], PUBLIC).rows
    accepted = {row.directory for row in read_index(dev.files["index.jsonl"], DEV).rows.values() if row.score != 90.0}
    assert len(rows) == 2 and set(rows) <= accepted and all(row.audited for row in rows.values())
    for path, data in dev.files.items():
        if any(path.startswith(f"{directory}/") for directory in rows):
            assert public.files[path] == data
    report = {"BENCHMARKS.md", "results/report.html", "results/benchmarks.csv", "results/classic/cartpole-ppo.json"}
    assert report <= set(public.files)
    assert "| CartPole-v1 | cartpole/ppo | below | 110.0 |" in public.files["README.md"].decode()
    assert b"](results/classic/cartpole-ppo.json)" in public.files["BENCHMARKS.md"]
    assert not list(project.glob("*graduate*"))


def test_graduating_again_keeps_what_is_there(hub: Hub, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without experiment files, sessions are checked against their own settings; uncommitted code is still refused."""
    assert run_rldsl(["graduate", PUBLIC, "--repo", DEV]) == 1
    capsys.readouterr()
    assert run_rldsl(["graduate", PUBLIC, "--repo", DEV]) == 1
    assert "0 sessions copied, 2 unchanged" in capsys.readouterr().out
    assert len(read_index(hub.repo(PUBLIC).files["index.jsonl"], PUBLIC).rows) == 2


def test_nothing_is_copied_if_nothing_is_accepted(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    dirty = {**PROVENANCE, "code": {"sha": None, "dirty": None}}
    finish(tmp_path / "runs", plan_of(), [rising(90.0), rising(91.0)], dirty)
    assert run_rldsl(["push", "--repo", DEV]) == 0
    assert run_rldsl(["graduate", PUBLIC, "--repo", DEV]) == 2
    assert "passes the audit: nothing was copied" in capsys.readouterr().err
    assert ("datasets", PUBLIC) not in hub.repos


def test_a_repository_is_not_graduated_to_itself(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_rldsl(["graduate", DEV, "--repo", DEV]) == 2
    assert "graduate needs another one" in capsys.readouterr().err
