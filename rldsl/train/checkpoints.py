"""Checkpoints of a pack: every member has its own, of the same frame, and its best policy so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rldsl.agents.base import Learner
from rldsl.spec.budget import Budget
from rldsl.store.ahead import SegmentsAhead
from rldsl.store.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from rldsl.store.session_dir import SessionDir

CHECKPOINT_SECONDS = 120.0


class CheckpointTimer:
    """When the next checkpoint is due: after `checkpoint_every` frames, or two minutes if the budget has none."""

    def __init__(self, budget: Budget, frame: int) -> None:
        self.every = budget.checkpoint_every
        self.restart(frame)

    def restart(self, frame: int) -> None:
        """Counts from here; called after each checkpoint."""
        self.frame, self.time = frame, time.monotonic()

    def due(self, frame: int) -> bool:
        if self.every is not None:
            return frame >= self.frame + self.every
        return time.monotonic() >= self.time + CHECKPOINT_SECONDS


class MemberCheckpoints:
    """The checkpoints of one member: the latest two, and `best`, the policy with the highest `episode_return`."""

    def __init__(self, directory: SessionDir, member: int) -> None:
        self.folder = directory.checkpoints
        self.member = member
        self.ahead = SegmentsAhead(self.folder)

    def load_best(self, agent: Learner, frame: int) -> None:
        """Continues with the best policy that was saved; in a new session, with the initial one."""
        saved = load_checkpoint(self.folder, tag="best")
        if saved is None:
            self.keep_best(agent, frame)
        else:
            self.best_frame, self.best_state = saved.frame, saved.state

    def keep_best(self, agent: Learner, frame: int) -> None:
        """Keeps the present policy as the best one, to be saved with the next checkpoint."""
        self.best_frame, self.best_state = frame, {"agent": agent.policy_state(self.member)}

    def save_ahead(self, agent: Learner) -> None:
        """Starts to write what a large replay buffer has finished, so that the next checkpoint has less to write."""
        if ring := agent.append_only_ring(self.member):
            self.ahead.maybe_flush(ring)

    def save(self, frame: int, state: dict[str, Any]) -> None:
        """Saves the best policy, and then the complete state, which knows how good the best one is."""
        self.ahead.wait()
        save_checkpoint(self.folder, self.best_frame, self.best_state, tag="best")
        save_checkpoint(self.folder, frame, state)
        self.ahead.clear()

    def close(self) -> None:
        self.ahead.close()


def common_checkpoints(directories: Sequence[SessionDir]) -> list[Checkpoint | None]:
    """Each member's checkpoint of the latest frame that all members have; None for all if there is no such frame.

    A process that is killed while it saves leaves members with checkpoints of different frames.
    """
    folders = [directory.checkpoints for directory in directories]
    checkpoints = [load_checkpoint(folder) for folder in folders]
    while len(frames := {saved.frame if saved else 0 for saved in checkpoints}) > 1:
        checkpoints = [load_checkpoint(folder, at_most=min(frames)) for folder in folders]
    return checkpoints
