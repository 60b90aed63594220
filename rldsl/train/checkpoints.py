"""Checkpoints of a pack: every member has its own, of the same frame, and its best policy so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rldsl.agents.base import Learner
from rldsl.spec.budget import Budget
from rldsl.store.ahead import SegmentsAhead
from rldsl.store.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, set_aside
from rldsl.store.errors import CheckpointDamaged
from rldsl.store.scratch import BackgroundCopies
from rldsl.store.session_dir import SessionDir

CHECKPOINT_SECONDS = 120.0
BEST = "best"


def _nothing() -> None:
    """Nothing to verify."""


class CheckpointTimer:
    """When the next checkpoint is due: after `checkpoint_every` frames, or two minutes if the budget has none.

    Another one is due before the last iteration: a session with a longer budget starts from it, because the last
    iteration may be cut short by the end of the budget.
    """

    def __init__(self, budget: Budget, frame: int) -> None:
        self.every, self.frames = budget.checkpoint_every, budget.frames
        self.is_last = False
        self.restart(frame)

    def restart(self, frame: int) -> None:
        """Counts from here; called after each checkpoint."""
        self.frame, self.time = frame, time.monotonic()

    def due(self, frame: int) -> bool:
        if self.every is not None:
            return frame >= self.frame + self.every
        return time.monotonic() >= self.time + CHECKPOINT_SECONDS

    def last_chance(self, before: int, frame: int) -> bool:
        """Whether the next iteration will be the last if it is as long as that from `before` to `frame`."""
        if self.is_last or not frame < self.frames <= frame + (frame - before):
            return False
        self.is_last = True
        return True


class MemberCheckpoints:
    """The checkpoints of one member: the latest two, and `best`, the policy with the highest `episode_return`.

    With a `scratch` directory they are written there, and copied to that of the session in the background.
    """

    def __init__(self, directory: SessionDir, member: int, scratch: Path | None = None) -> None:
        self.folder = directory.checkpoints
        self.member = member
        self.copies = None if scratch is None else BackgroundCopies(self.folder)
        self._work = self.folder if scratch is None else scratch / directory.id
        self.ahead = SegmentsAhead(self._work)

    def load_best(self, agent: Learner, frame: int) -> str | None:
        """Continues with the best policy that was saved; in a new session, with the initial one.

        A damaged one is set aside, and the present policy takes its place; then a sentence is returned.
        """
        try:
            saved = load_checkpoint(self.folder, tag=BEST)
        except CheckpointDamaged as error:
            aside = set_aside(self.folder, BEST)
            self.keep_best(agent, frame)
            return f"{error}: moved to {aside.name}, the policy of frame {frame:,} takes its place"
        if saved is None:
            self.keep_best(agent, frame)
        else:
            self.best_frame, self.best_state = saved.frame, saved.state
        return None

    def keep_best(self, agent: Learner, frame: int) -> None:
        """Keeps the present policy as the best one, to be saved with the next checkpoint."""
        self.best_frame, self.best_state = frame, {"agent": agent.policy_state(self.member)}

    def save_policy(self, name: str, agent: Learner, frame: int) -> None:
        """Saves the present policy under a name of its own."""
        self.wait()
        self._save(frame, {"agent": agent.policy_state(self.member)}, name)
        self.wait()

    def save_ahead(self, agent: Learner) -> None:
        """Starts to write what a large replay buffer has finished, so that the next checkpoint has less to write."""
        if ring := agent.append_only_ring(self.member):
            self.ahead.maybe_flush(ring)

    def save(self, frame: int, state: dict[str, Any], verify: Callable[[], None]) -> None:
        """Saves the best policy, and then the complete state, which knows how good the best one is."""
        self.wait()
        self.ahead.wait()
        self._save(self.best_frame, self.best_state, BEST, verify)
        self._save(frame, state, None, verify)
        self.ahead.clear()

    @property
    def copied(self) -> bool:
        """Whether what was saved is in the directory of the session, or could not be copied: then `wait` raises."""
        return self.copies is None or self.copies.finished

    def wait(self) -> None:
        """Returns when what was saved is in the directory of the session."""
        if self.copies is not None:
            self.copies.wait()

    def _save(self, frame: int, state: dict[str, Any], tag: str | None, verify: Callable[[], None] = _nothing) -> None:
        saved = save_checkpoint(self._work, frame, state, tag=tag, verify=verify)
        if self.copies is not None:
            self.copies.start(saved, verify)

    def close(self) -> None:
        self.ahead.close()
        if self.copies is not None:
            self.copies.close()


def common_checkpoints(directories: Sequence[SessionDir]) -> list[Checkpoint | None]:
    """Each member's checkpoint of the latest frame that all members have; None for all if there is no such frame.

    A process that is killed while it saves leaves members with checkpoints of different frames. Each checkpoint says
    which newer ones of its member are damaged.
    """
    folders = [directory.checkpoints for directory in directories]
    checkpoints = [load_checkpoint(folder) for folder in folders]
    damaged = [[*saved.damaged] if saved else [] for saved in checkpoints]
    while len(frames := {saved.frame if saved else 0 for saved in checkpoints}) > 1:
        checkpoints = [load_checkpoint(folder, at_most=min(frames)) for folder in folders]
        for known, saved in zip(damaged, checkpoints, strict=True):
            known += [one for one in (saved.damaged if saved else ()) if one not in known]
    return [saved and saved._replace(damaged=known) for saved, known in zip(checkpoints, damaged, strict=True)]
