"""`train --debug` trains in the process of the command."""

from __future__ import annotations

import subprocess
import sys

from tests.project import ROOT, Project, environment, events, work

EXAMPLE = (ROOT / "docs" / "examples" / "hill_climbing.py").read_text()
SHORT = ("--frames", "2000", "--seeds", "1")


def test_breakpoints_work_and_the_results_are_the_same(project: Project) -> None:
    project.write(EXAMPLE, "hill_climbing.py")
    assert project.python("hill_climbing.py", *SHORT, "--runs", "other").returncode == 0
    broken = EXAMPLE.replace("        candidate = ", "        breakpoint()\n        candidate = ", 1)
    project.write(broken, "hill_climbing.py")
    ran = subprocess.run(
        [sys.executable, "hill_climbing.py", *SHORT, "--debug"],
        cwd=project.root,
        env=environment(),
        input="p 'at frame', world.frame\nimport sys; sys.breakpointhook = lambda: None\ncontinue\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "('at frame', 0)" in ran.stdout and "done  cartpole/hill_climbing seed 0" in ran.stdout
    (other,) = project.root.glob("other/*/*/seed-0")
    assert work(project.session) == work(other)


def test_a_failed_session_is_trained_again_and_raises_its_exception(project: Project) -> None:
    error = "raise FileNotFoundError('no map')"
    project.write(EXAMPLE.replace("candidate = ", f"{error}\n        candidate = ", 1), "hill_climbing.py")
    assert project.python("hill_climbing.py", *SHORT).returncode == 1
    ran = project.python("hill_climbing.py", *SHORT, "--debug")
    assert ran.returncode == 1 and "failed  cartpole/hill_climbing seed 0" in ran.stdout
    assert "training 1 session in this process; breakpoint() works" in ran.stdout
    assert "Traceback" in ran.stderr and error in ran.stderr
    assert [event["event"] for event in events(project.session)].count("failed") == 2

    project.write(EXAMPLE.replace("        candidate = ", "        1 / 0\n        candidate = ", 1), "hill_climbing.py")
    ran = project.rldsl("train", "hill_climbing.py", *SHORT, "--debug")
    assert ran.returncode == 1
    assert "ZeroDivisionError" in ran.stderr and "hill_climbing.py" in ran.stderr
    assert events(project.session)[-1]["event"] == "failed"
    refused = project.rldsl("train", "hill_climbing.py", *SHORT, "--debug", "--detach")
    assert refused.returncode == 2 and "--debug trains in this process" in refused.stderr
