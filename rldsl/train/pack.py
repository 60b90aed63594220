"""Training of one pack: sessions that train together in one process, a member each. `Pack._train` is the loop."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rldsl.agents.base import AgentContext, Learner
from rldsl.envs.contract import EnvError, VectorEnv
from rldsl.spec.errors import SpecError
from rldsl.spec.gin_text import session_gin
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.store.errors import StoreError
from rldsl.store.provenance import Provenance, write_provenance
from rldsl.store.session_dir import SessionDir
from rldsl.train.checkpoints import CheckpointTimer, MemberCheckpoints, common_checkpoints
from rldsl.train.evaluation import EVALUATION_COLUMNS, Evaluator
from rldsl.train.malloc import MemoryTrimmer
from rldsl.train.recorder import Recorder
from rldsl.train.world import PackWorld

DIVERGED = "its parameters are not finite any more"

Stop = Callable[[], str | None]
"""Returns the reason to stop now, or None to go on. Asked after every iteration."""


class Pack:
    """Sessions with the same trial up to the fields marked `PerMember` in their specs, each in its own directory."""

    def __init__(self, sessions: Sequence[Session], directories: Sequence[SessionDir], origin: Provenance) -> None:
        self.sessions = sessions
        self.directories = directories
        self.origin = origin
        self.trial = sessions[0].trial
        self.budget = self.trial.budget
        self.frame = 0
        self.active = [True] * len(sessions)
        """Members that have not diverged."""
        self.notes: dict[str, Any] = {}
        """The agent's notes as last journalled."""

    def run(self, stop: Stop, until: int | None = None) -> str:
        """Trains until the budget is used up, the frame `until` is reached, or `stop` gives a reason.

        Returns `done`, `paused`, `failed` or that reason. Schedules are those of the full budget, whatever `until` is.
        """
        with ExitStack() as stack:
            for directory in self.directories:
                stack.enter_context(directory.claim())
            try:
                self._prepare(stack)
                return self._train(stop, self.budget.frames if until is None else until)
            except BaseException as error:
                self._journal("failed", reason=_sentence(error))
                raise

    def _train(self, stop: Stop, until: int) -> str:
        timer, memory = CheckpointTimer(self.budget, self.frame), MemoryTrimmer()
        while not self.world.exhausted and self.frame < until:
            self.agent.iterate(self.world)  # collect and learn; the world takes the log points that are due
            self.frame = self.world.frame
            self._check_divergence()
            if not any(self.active):
                self._log()
                return "failed"
            if self.world.exhausted:
                self._evaluate()  # before the last log point, which must contain the result
            self._log()
            self._evaluate()
            self._journal_notes()
            self._save_ahead()
            memory.maybe_trim()
            if reason := stop():
                self._checkpoint()
                self._journal("stopped", reason=reason)
                return reason
            if timer.due(self.frame):
                self._checkpoint()
                timer.restart(self.frame)
        self._checkpoint()
        outcome = "done" if self.world.exhausted else "paused"
        self._journal(outcome)
        return outcome if all(self.active) else "failed"

    def _check_divergence(self) -> None:
        """A member whose parameters are not finite fails; the others go on."""
        for member, diverged in enumerate(self.agent.diverged()):
            if diverged and self.active[member]:
                self.active[member] = False
                self.agent.reset_diverged(member)
                self.directories[member].journal.append("failed", frame=self.frame, reason=f"diverged: {DIVERGED}")

    def _log(self) -> None:
        """Writes the log points of this iteration, and keeps the policies of members that improved."""
        for member, recorder in enumerate(self.recorders):
            recorder.write_log_points(self.evaluator.metrics(member) if self.evaluator else {})
            if recorder.improved:
                recorder.improved = False
                self.checkpoints[member].keep_best(self.agent, self.frame)

    def _journal_notes(self) -> None:
        """Journals what has changed in the agent's notes, such as how its update was compiled."""
        notes = self.agent.notes()
        if changed := {name: value for name, value in notes.items() if self.notes.get(name) != value}:
            self._journal("compute", **changed)
            self.notes = notes

    def _evaluate(self) -> None:
        """Evaluates if it is due, and has not been done in this iteration."""
        if self.evaluator is not None:
            self.evaluator.maybe_evaluate(self.agent, self.frame)

    def _save_ahead(self) -> None:
        """Writes finished segments of large replay buffers in the background, so that checkpoints are short."""
        for member, checkpoints in enumerate(self.checkpoints):
            if self.active[member]:
                checkpoints.save_ahead(self.agent)

    def _checkpoint(self) -> None:
        for member, checkpoints in enumerate(self.checkpoints):
            if self.active[member]:
                self.recorders[member].sync()
                checkpoints.save(self.frame, self._state(member))
        self._journal("checkpoint")

    def _state(self, member: int) -> dict[str, Any]:
        state = {"world": self.world.state(member), "agent": self.agent.state(member)}
        return state | {"evaluation": self.evaluator.state(member)} if self.evaluator else state

    def _journal(self, event: str, **facts: object) -> None:
        for member, directory in enumerate(self.directories):
            if self.active[member]:
                directory.journal.append(event, frame=self.frame, **facts)

    def _prepare(self, stack: ExitStack) -> None:
        """Builds environments, agent, evaluator and recorders, and restores the latest checkpoint."""
        for directory in self.directories:
            write_provenance(directory.path, self.origin)
        trial, seeds = self.trial, [session.seed for session in self.sessions]
        threads = trial.compute.threads
        envs = implementation(trial.env)(trial.env, len(seeds) * trial.env.num_envs, threads)
        stack.callback(envs.close)
        self.agent = self._make_agent(envs, seeds)
        self.evaluator = Evaluator(trial.evaluation, trial.env, seeds, threads) if trial.evaluation else None
        columns = (*self.agent.columns, *(EVALUATION_COLUMNS if self.evaluator else ()))
        self.recorders = [Recorder(one, columns, one.read_state().seconds) for one in self.directories]
        self.checkpoints = [MemberCheckpoints(one, member) for member, one in enumerate(self.directories)]
        for recorder, checkpoints in zip(self.recorders, self.checkpoints, strict=True):
            stack.callback(recorder.close)
            stack.callback(checkpoints.close)
        self.world = PackWorld(envs, trial.env.num_envs, self.budget, self.agent, self.recorders, self.active)
        self.world.begin(seeds)
        self._restore()
        self.notes = self.agent.notes()
        self._journal("started", host=socket.gethostname(), pid=os.getpid(), members=len(seeds), **self.notes)

    def _make_agent(self, envs: VectorEnv, seeds: Sequence[int]) -> Learner:
        trial = self.trial
        learner: type[Learner] = implementation(trial.agent)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(trial.compute.threads)
        return learner(
            AgentContext(
                specs=[session.trial.agent for session in self.sessions],
                seeds=seeds,
                spaces=envs.spaces,
                num_envs=trial.env.num_envs,
                frames=self.budget.frames,
                compute=trial.compute,
            )
        )

    def _restore(self) -> None:
        """Resumes every member from the latest checkpoint that all of them have, if there is one."""
        saved = common_checkpoints(self.directories)
        self.frame = saved[0].frame if saved[0] else 0
        new_episodes = self.frame > 0 and not self.world.envs.exact_resume
        if new_episodes:
            self.world.begin([session.seed for session in self.sessions], f"from {self.frame}")
        for member, checkpoint in enumerate(saved):
            if checkpoint is not None:
                self.world.restore(member, checkpoint.state["world"], checkpoint.frame)
                self.agent.restore(member, checkpoint.state["agent"])
                if self.evaluator:
                    self.evaluator.restore(member, checkpoint.state["evaluation"])
        if new_episodes:
            self.agent.forget_episodes()
        for checkpoints in self.checkpoints:
            checkpoints.load_best(self.agent, self.frame)


def open_directories(runs: Path, sessions: Sequence[Session]) -> list[SessionDir]:
    """The sessions' directories; creates those that do not exist."""
    return [SessionDir.create(runs, one.directory, one.record(), session_gin(one)) for one in sessions]


def _sentence(error: BaseException) -> str:
    if isinstance(error, SpecError | StoreError | EnvError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
