"""A session that was trained with other code is shown as such, never continued silently, and can be redone."""

from __future__ import annotations

import json
import os
import re

import pytest

from tests.cli.test_display import Terminal
from tests.project import ROOT, Project, events, until, work

EXAMPLE = (ROOT / "docs" / "examples" / "hill_climbing.py").read_text()
EDITED = EXAMPLE.replace("candidate = self.weights + ", "candidate = self.weights - ")
LONG = ("--frames", "1e8", "--seeds", "1", "--set", "checkpoint_every=1000", "--set", "log_every=1e6")
SHORT = ("--frames", "2000", "--seeds", "1")


@pytest.fixture
def climbing(project: Project) -> Project:
    project.write(EXAMPLE, "hill_climbing.py")
    return project


def stopped(project: Project) -> None:
    """Trains a long session until its first checkpoint and stops it."""
    process = project.start("hill_climbing.py", *LONG)
    until(lambda: project.sessions and any(one["event"] == "checkpoint" for one in events(project.session)))
    project.python("hill_climbing.py", "stop", *LONG)
    process.wait(30)


def test_a_finished_session_is_marked_and_kept_until_it_is_redone(climbing: Project) -> None:
    assert climbing.python("hill_climbing.py", *SHORT).returncode == 0
    first = work(climbing.session)
    code = events(climbing.session)[1]["code"]
    assert json.loads((climbing.session / "provenance.json").read_text())["code"]["digest"] == code
    climbing.write(EDITED.replace("class HillClimber", "# a comment\nclass HillClimber"), "hill_climbing.py")
    for command in ("plan", "status"):
        assert "done (other code)" in climbing.python("hill_climbing.py", command, *SHORT).stdout
    kept = climbing.python("hill_climbing.py", *SHORT)
    assert "1 finished session was trained with other code and kept; --redo" in kept.stdout
    assert kept.returncode == 0 and events(climbing.session)[-1]["event"] == "done"
    shown = climbing.rldsl("diff", climbing.session.parent.name[-12:], "hill_climbing.py").stdout
    assert "1 source file differs" in shown
    assert "\n-        candidate = self.weights + np.stack(noise)" in shown
    assert "\n+        candidate = self.weights - np.stack(noise)" in shown

    redone = climbing.python("hill_climbing.py", *SHORT, "--redo")
    assert redone.returncode == 0 and "other code" not in redone.stdout
    session = climbing.runs.glob("*/*/seed-0").__next__()
    assert events(session)[1]["code"] != code
    aside = session.with_name("seed-0.old-1")
    assert work(aside) == first, "nothing is lost"
    assert "1 older session set aside" in climbing.python("hill_climbing.py", "status", *SHORT).stdout
    assert "seed-0.old-1" in climbing.rldsl("list", "--aside").stdout
    assert "seed-0.old-1" not in climbing.rldsl("list").stdout
    between = climbing.rldsl("diff", aside, session).stdout
    assert "candidate = self.weights - np.stack(noise)" in between
    again = climbing.python("hill_climbing.py", *SHORT, "--redo")
    assert again.returncode == 0 and not session.with_name("seed-0.old-2").exists(), "it has the present code"


def test_an_unfinished_session_needs_a_decision(climbing: Project) -> None:
    stopped(climbing)
    climbing.write(EDITED, "hill_climbing.py")
    for command in ("train", "resume"):
        refused = climbing.python("hill_climbing.py", command, *LONG)
        assert refused.returncode == 2
        assert re.search(
            r"error: 1 session of cartpole/hill_climbing was started with other code \(hill_climbing.py differs\): "
            r"--continue resumes with the present code, --redo sets aside and trains again, `rldsl diff \S+-s0 FILE`",
            refused.stderr,
        )
    both = climbing.python("hill_climbing.py", *LONG, "--redo", "--continue")
    assert both.returncode == 2 and "exclude each other" in both.stderr
    attempts = [one for one in events(climbing.session) if one["event"] == "started"]
    assert len(attempts) == 1

    process = climbing.start("hill_climbing.py", *LONG, "--continue")
    until(lambda: len([one for one in events(climbing.session) if one["event"] == "started"]) == 2)
    climbing.python("hill_climbing.py", "stop", *LONG)
    process.wait(30)
    attempts = [one for one in events(climbing.session) if one["event"] == "started"]
    assert attempts[0]["code"] != attempts[1]["code"] and attempts[1]["frame"] > 0
    status = climbing.python("hill_climbing.py", "status", *LONG).stdout
    assert "trained with 2 versions of the code" in status and "other code" not in status


def test_a_worker_refuses_too(climbing: Project) -> None:
    stopped(climbing)
    climbing.write(EDITED, "hill_climbing.py")
    plan = next((climbing.runs / ".plans").glob("*.json"))
    id = f"{climbing.session.parent.name[-12:]}-s0"
    options = ("--runs", "runs", "--session", id, "--file", "hill_climbing.py", "--until", "1")
    refused = climbing.python("-m", "rldsl.train", plan, *options)
    assert refused.returncode == 1 and "was started with other code" in refused.stderr
    assert events(climbing.session)[-1]["event"] == "stopped", "it has not failed"
    assert climbing.python("-m", "rldsl.train", plan, *options, "--any-code").returncode == 0


def test_on_a_terminal_it_asks(climbing: Project) -> None:
    stopped(climbing)
    climbing.write(EDITED, "hill_climbing.py")
    terminal = Terminal(climbing, "hill_climbing.py", *LONG)
    question = r"ontinue it with the present code, \[r\]edo it, or \[q\]uit \[q\]: "
    terminal.until(question)
    os.write(terminal.master, b"what\n")
    terminal.until(rf"(?s){question}what.*{question}")
    os.write(terminal.master, b"\n")
    while terminal.process.poll() is None:
        terminal.read()
    assert terminal.process.returncode == 2 and "nothing was started" in terminal.read()
    assert len([one for one in events(climbing.session) if one["event"] == "started"]) == 1


def test_sessions_without_a_digest_are_continued_as_before(climbing: Project) -> None:
    stopped(climbing)
    journal = climbing.session / "journal.jsonl"
    journal.write_text(re.sub(r', "(code|crc)": "\w+"', "", journal.read_text()))
    climbing.write(EDITED, "hill_climbing.py")
    assert "other code" not in climbing.python("hill_climbing.py", "status", *LONG).stdout
