"""Trains experiments of the suite for a few thousand frames, with the command that people use."""

from __future__ import annotations

import math

from tests.project import ROOT, Project, rows

SHORT = ("--seeds", "1", "--set", "compute.compile=off", "--set", "budget.log_every=512")


def short_agents(rollout: int, updates_per_frame: float) -> list[str]:
    """Options for small rollouts and few updates, so that all agents of a file learn within the frames."""
    changes = {
        "agent.rollout": rollout,
        "agent.learning_starts": 256,
        "agent.buffer": 4096,
        "agent.updates_per_frame": updates_per_frame,
    }
    return [part for path, value in changes.items() for part in ("--set", f"{path}={value}")]


def train(project: Project, file: str, frames: int, *options: str) -> None:
    """Trains what the options choose of a file; every session has to reach its last frame and to learn."""
    ran = project.python(ROOT / "experiments" / file, "--frames", frames, *SHORT, *options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert project.sessions
    for session in project.sessions:
        last = rows(session)[-1]
        assert int(last["frame"]) == frames, session
        assert "/random-" in str(session) or math.isfinite(float(last["grad_norm"])), session
