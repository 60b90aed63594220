"""Trains experiments of the suite for a few thousand frames, with the command that people use."""

from __future__ import annotations

import math

from tests.project import ROOT, Project, rows

SHORT = ("--seeds", "1", "--set", "compute.compile=off", "--set", "budget.log_every=512")
OFF_POLICY = (
    *("--set", "agent.learning_starts=256"),
    *("--set", "agent.buffer=4096"),
    *("--set", "agent.updates_per_frame=0.01"),
)


def train(project: Project, file: str, frames: int, *options: str) -> None:
    """Trains what the options choose of a file; every session has to reach its last frame and to learn."""
    ran = project.python(ROOT / "experiments" / file, "--frames", frames, *SHORT, *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert project.sessions
    for session in project.sessions:
        last = rows(session)[-1]
        assert int(last["frame"]) == frames, session
        assert "/random-" in str(session) or math.isfinite(float(last["grad_norm"])), session
