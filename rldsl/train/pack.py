"""The life of a pack: claim, restore, train, checkpoint, end. Every member keeps its own directory."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rldsl.agents.contract import AgentContext, Learner
from rldsl.envs.contract import EnvError
from rldsl.spec.errors import SpecError
from rldsl.spec.gin_text import session_gin
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.store.ahead import SegmentsAhead
from rldsl.store.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from rldsl.store.errors import StoreError
from rldsl.store.provenance import Provenance, write_provenance
from rldsl.store.session_dir import SessionDir
from rldsl.train.evaluation import EVALUATED, Evaluator
from rldsl.train.freed_memory import FreedMemory
from rldsl.train.recorder import Recorder
from rldsl.train.world import PackWorld

CHECKPOINT_SECONDS = 120.0
DIVERGED = "its parameters are not finite any more"

Stop = Callable[[], str | None]
"""Why the pack should stop now, if it should."""


class Pack:
    """Sessions that train together, a member each: what may differ between them is marked in their specs."""

    def __init__(self, sessions: Sequence[Session], directories: Sequence[SessionDir], origin: Provenance) -> None:
        self.sessions = sessions
        self.directories = directories
        self.origin = origin
        self.trial = sessions[0].trial
        self.budget = self.trial.budget
        self.frame = 0
        self.active = [True] * len(sessions)

    def run(self, stop: Stop) -> str:
        """Trains until the budget is used up or `stop` says why not; returns `done`, `failed` or the reason."""
        with ExitStack() as stack:
            for directory in self.directories:
                stack.enter_context(directory.claim())
            try:
                self._prepare(stack)
                return self._train(stop)
            except BaseException as error:
                self._journal("failed", reason=_sentence(error))
                raise

    def _prepare(self, stack: ExitStack) -> None:
        for directory in self.directories:
            write_provenance(directory.path, self.origin)
        trial, seeds = self.trial, [session.seed for session in self.sessions]
        threads = trial.compute.threads
        envs = implementation(trial.env)(trial.env, len(seeds) * trial.env.num_envs, threads)
        stack.callback(envs.close)
        learner: type[Learner] = implementation(trial.agent)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        self.agent = learner(
            AgentContext(
                specs=[session.trial.agent for session in self.sessions],
                seeds=seeds,
                spaces=envs.spaces,
                num_envs=trial.env.num_envs,
                frames=self.budget.frames,
                compute=trial.compute,
            )
        )
        self.evaluator = Evaluator(trial.evaluation, trial.env, seeds, threads) if trial.evaluation else None
        columns = (*learner.columns, *(EVALUATED if self.evaluator else ()))
        self.recorders = [Recorder(one, columns, one.report().seconds) for one in self.directories]
        self.ahead = [SegmentsAhead(one.checkpoints) for one in self.directories]
        for one in (*self.recorders, *self.ahead):
            stack.callback(one.close)
        self.world = PackWorld(envs, trial.env.num_envs, self.budget, self.recorders, self.active)
        self.world.metrics = self._metrics
        self.world.begin(seeds)
        self._restore()
        self._journal("started", host=socket.gethostname(), pid=os.getpid(), members=len(seeds), **self.agent.notes())

    def _metrics(self) -> dict[str, Any]:
        """What a log point says beside return and speed; an evaluation that is due is made for it."""
        if self.evaluator is None:
            return dict(self.agent.metrics())
        self.evaluator.look(self.agent, self.world.frame)
        return {**self.agent.metrics(), **self.evaluator.metrics()}

    def _restore(self) -> None:
        """Every member goes on from the last checkpoint at a frame of which all have one."""
        found = self._common_checkpoints()
        self.frame = found[0].frame if found[0] else 0
        if self.frame and not self.world.envs.exact_resume:
            self.world.begin([session.seed for session in self.sessions], f"from {self.frame}")
        for member, checkpoint in enumerate(found):
            if checkpoint is not None:
                self.world.restore(member, checkpoint.state["world"], checkpoint.frame)
                self.agent.restore(member, checkpoint.state["agent"])
                if self.evaluator:
                    self.evaluator.restore(member, checkpoint.state["evaluation"])
        if self.frame and not self.world.envs.exact_resume:
            self.agent.forget_episodes()
        self.best = [self._best_so_far(member) for member in range(len(self.sessions))]

    def _common_checkpoints(self) -> list[Checkpoint | None]:
        """A process that was killed between two members' checkpoints left one of them further on than the other."""
        folders = [directory.checkpoints for directory in self.directories]
        found = [load_checkpoint(folder) for folder in folders]
        while len(frames := {one.frame if one else 0 for one in found}) > 1:
            found = [load_checkpoint(folder, at_most=min(frames)) for folder in folders]
        return found

    def _train(self, stop: Stop) -> str:
        due, freed_memory = self._next_checkpoint(), FreedMemory()
        while not self.world.exhausted:
            self.agent.iterate(self.world)
            self.frame = self.world.frame
            self._after_iteration()
            self._save_ahead()
            freed_memory.give_back()
            if not any(self.active):
                return "failed"
            if reason := stop():
                self._checkpoint()
                self._journal("stopped", reason=reason)
                return reason
            if due():
                self._checkpoint()
                due = self._next_checkpoint()
        self._checkpoint()
        self._journal("done")
        return "done" if all(self.active) else "failed"

    def _after_iteration(self) -> None:
        for member, diverged in enumerate(self.agent.diverged()):
            if diverged and self.active[member]:
                self.active[member] = False
                self.agent.reset_diverged(member)
                self.directories[member].journal.append("failed", frame=self.frame, reason=f"diverged: {DIVERGED}")
        for member, recorder in enumerate(self.recorders):
            if recorder.improved:
                recorder.improved = False
                self.best[member] = self._policy_state(member)

    def _best_so_far(self, member: int) -> tuple[int, dict[str, Any]]:
        """What an earlier life kept as its best; in the first, what is there to begin with."""
        saved = load_checkpoint(self.directories[member].checkpoints, tag="best")
        return self._policy_state(member) if saved is None else (saved.frame, saved.state)

    def _policy_state(self, member: int) -> tuple[int, dict[str, Any]]:
        """What `enjoy` needs of a member as it is now."""
        return self.frame, {"agent": self.agent.policy_state(member)}

    def _next_checkpoint(self) -> Callable[[], bool]:
        """Says when the next checkpoint is due: by frames if the budget says so, otherwise by the clock."""
        if self.budget.checkpoint_every is not None:
            frame = self.world.frame + self.budget.checkpoint_every
            return lambda: self.world.frame >= frame
        moment = time.monotonic() + CHECKPOINT_SECONDS
        return lambda: time.monotonic() >= moment

    def _save_ahead(self) -> None:
        for member, ahead in enumerate(self.ahead):
            if self.active[member] and (rows := self.agent.growing(member)):
                ahead.maybe_flush(rows)

    def _checkpoint(self) -> None:
        for member, directory in enumerate(self.directories):
            if self.active[member]:
                self.recorders[member].sync()
                self.ahead[member].wait()
                state = {"world": self.world.state(member), "agent": self.agent.state(member)}
                if self.evaluator:
                    state["evaluation"] = self.evaluator.state(member)
                frame, best = self.best[member]
                save_checkpoint(directory.checkpoints, frame, best, tag="best")
                save_checkpoint(directory.checkpoints, self.frame, state)  # last: it knows how good the best one is
                self.ahead[member].clear()
        self._journal("checkpoint")

    def _journal(self, event: str, **facts: object) -> None:
        for member, directory in enumerate(self.directories):
            if self.active[member]:
                directory.journal.append(event, frame=self.frame, **facts)


def open_directories(runs: Path, sessions: Sequence[Session]) -> list[SessionDir]:
    """The sessions' directories, made where they are not there yet."""
    return [SessionDir.create(runs, one.directory, one.record(), session_gin(one)) for one in sessions]


def _sentence(error: BaseException) -> str:
    if isinstance(error, SpecError | StoreError | EnvError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
