"""A token reaches the job that asked for it by name, and is written nowhere on its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import until
from tests.slurm.lab import Lab

TOKEN = "hf_" + "PlantedTokenThatNobodyMaySee1234"


def everything_running() -> bytes:
    """The command lines of all processes."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes() + b"\n"
        except OSError:
            continue
    return found


def test_a_planted_token_is_found_nowhere(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("OTHER_TOKEN", TOKEN)
    lab.launcher(pass_env=("HF_TOKEN",), members=2)
    words = ("--only", "slow", "--set", "agent.nap=0.01", "--set", "agent.says=HF_TOKEN")
    said = lab.train(*words, "--detach")
    path = lab.until_begun(points=1)
    assert TOKEN.encode() not in everything_running(), "argv"
    job = lab.cluster.ask("scontrol", "show", "job", lab.jobs[0])
    said += lab.command("status", *words) + lab.command("plan", *words, "--on", "lab")
    lab.until_event("done")
    lab.until_gone()
    expected = f"HF_TOKEN is {len(TOKEN)} long: {sum(TOKEN.encode())}"
    assert until(lambda: expected in (path / "log.txt").read_text()), "the job has it"
    assert TOKEN not in said + job + lab.cluster.logs()
    assert TOKEN.encode() not in lab.written(), "scripts, pickles, plans, tickets, journals, provenance, logs"


def test_only_what_was_named_reaches_a_job(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_TOKEN", TOKEN)
    lab.train("--only", "slow", "--seeds", 1, "--frames", 100, "--set", "agent.says=OTHER_TOKEN")
    assert "OTHER_TOKEN is 0 long" in (lab.seed(0) / "log.txt").read_text()


def test_a_profile_with_a_token_in_it_is_refused(lab: Lab) -> None:
    lab.launcher(env={"HF_TOKEN": TOKEN})
    said = lab.train("--only", "slow", "--detach", fails=True)
    assert "HF_TOKEN looks like a secret: pass it by its name alone" in said and TOKEN not in said
