"""Sessions as training leaves them, with checkpoints, for pushing and pulling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rldsl import PPO, Classic, experiment
from rldsl.hub.push import Changes
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from rldsl.store.checkpoint import save_checkpoint
from rldsl.store.session_dir import SessionDir
from tests.report.finished import FRAMES, LOG_EVERY, finish, rising


def plan_of(gamma: float = 0.99, seeds: int = 2) -> Plan:
    """A trial of its own for each gamma."""
    builder = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(PPO(gamma=gamma)).frames(FRAMES)
    return make_plan([Overridden(builder.log_every(LOG_EVERY).seeds(seeds).target(450).build())])


def finished(runs: Path, gamma: float = 0.99, scores: Sequence[float] = (100.0, 120.0)) -> list[SessionDir]:
    """A finished session for each score, with two checkpoints and the best one."""
    sessions = finish(runs, plan_of(gamma, len(scores)), [rising(score) for score in scores])
    for session, score in zip(sessions, scores, strict=True):
        for frame in (5_000, FRAMES):
            save_checkpoint(session.checkpoints, frame, {"weights": np.full(9, score + frame)})
        save_checkpoint(session.checkpoints, FRAMES, {"weights": np.full(9, score)}, tag="best")
        session.log.write_text("a line\n")
    return sessions


def undescribed(changes: Changes) -> dict[str, bytes]:
    """Instead of card, tables and plots, which take most of the time of a push: nothing."""
    return {}


def directory_of(runs: Path, session: SessionDir) -> str:
    return session.path.relative_to(runs).as_posix()


def contents(root: Path) -> dict[str, bytes]:
    """The files of a session or run directory, without those of one machine."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    names = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    return {name: data for name, data in names.items() if ".hub/" not in name and not name.endswith("lock")}
