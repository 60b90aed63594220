"""Training of one pack: sessions that train together in one process, a member each. `Pack._train` is the loop."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal

from rldsl.agents.base import AgentContext, Learner
from rldsl.compile.activity import CompilationInterrupted, activity
from rldsl.envs.contract import EnvError, VectorEnv
from rldsl.spec.errors import SpecError
from rldsl.spec.gin_text import session_gin
from rldsl.spec.implementation import implementation
from rldsl.spec.init_from import InitFrom
from rldsl.spec.session import Session
from rldsl.store.checkpoint import Checkpoint
from rldsl.store.claim import Claim, Patience
from rldsl.store.code_version import CodeVersions
from rldsl.store.errors import ClaimLost, OtherCode, StoreError
from rldsl.store.kept_sources import save_sources
from rldsl.store.provenance import Provenance, write_provenance
from rldsl.store.scratch import VARIABLE as SCRATCH
from rldsl.store.session_dir import SessionDir
from rldsl.train.checkpoints import CheckpointTimer, MemberCheckpoints, common_checkpoints
from rldsl.train.device import resolve_device
from rldsl.train.evaluation import EVALUATION_COLUMNS, Evaluator
from rldsl.train.hooks import Hooks
from rldsl.train.initial import load_initial_weights
from rldsl.train.malloc import MemoryTrimmer
from rldsl.train.recorder import COLUMNS, Recorder
from rldsl.train.world import PackWorld

DIVERGED = "its parameters are not finite any more"

Stop = Callable[[], str | None]
"""Returns the reason to stop now, or None to go on. Asked after every iteration."""


class Pack:
    """Sessions with the same trial up to the fields marked `PerMember` in their specs, each in its own directory."""

    def __init__(
        self,
        sessions: Sequence[Session],
        directories: Sequence[SessionDir],
        origin: Provenance,
        code: CodeVersions | None = None,
        *,
        any_code: bool = False,
    ) -> None:
        """`code` is recorded with the sessions; with `any_code`, those that other code started are continued."""
        self.sessions = sessions
        self.directories = directories
        self.origin = origin
        self.versions = [None if code is None else code.of(session.trial) for session in sessions]
        self.any_code = any_code
        self.trial = sessions[0].trial
        self.budget = self.trial.budget
        self.frame = 0
        self.hooks: list[Hooks] = []
        self.failed = False
        """Whether a member has failed."""
        self.active = [True] * len(sessions)
        """Members that are training: they have neither diverged nor been ended by a hook."""
        self.recorders: list[Recorder] = []
        self.claims: Sequence[Claim] = ()
        self.notes: dict[str, Any] = {}
        """The agent's notes as last journalled."""
        self.scratch = Path(folder) if (folder := os.environ.get(SCRATCH)) else None
        """Where checkpoints are written first, on the disk of the node."""
        self._saved: int | None = None
        """The frame of a checkpoint that is not in the run directory yet."""
        self.steady = True
        """Whether the latest iteration learned, and did not compile: its speed is that of those to come."""

    def run(self, stop: Stop, until: int | None = None, wait_seconds: float = 0.0) -> str:
        """Trains until the budget is used up, the frame `until` is reached, or `stop` gives a reason.

        Returns `done`, `paused`, `failed` or that reason. Schedules are those of the full budget, whatever `until` is.
        A process that still holds a session is given `wait_seconds` to end.
        """
        patience = Patience(wait_seconds, _tell, stop)
        with ExitStack() as stack:
            self.claims = [stack.enter_context(directory.claim(patience)) for directory in self.directories]
            self._refuse_other_code()
            for directory in self.directories:
                directory.remove_leftovers()
            try:
                self._prepare(stack)
                self._journal_compilation(stack)
                return self._train(stop, self.budget.frames if until is None else until)
            except CompilationInterrupted:  # in the middle of an iteration: it resumes from the latest checkpoint
                reason = stop() or "asked to stop"
                self._journal_end("stopped", reason=f"{reason} while compiling")
                return reason
            except ClaimLost:
                raise
            except BaseException as error:
                with suppress(ClaimLost):
                    self._journal_end("failed", reason=_sentence(error))
                    self._end_hooks("failed", _sentence(error))
                raise

    def _verify_claims(self) -> None:
        """Raises ClaimLost if another process has taken over a session; called before each write."""
        for claim in self.claims:
            claim.verify()

    def _train(self, stop: Stop, until: int) -> str:
        timer, memory = CheckpointTimer(self.budget, self.frame), MemoryTrimmer()
        while not self.world.exhausted and self.frame < until:
            before = self.frame
            self._iterate()
            self._check_divergence()
            if not any(self.active):
                self._log()
                return self._outcome("done")
            if self.world.exhausted:
                self._evaluate()  # before the last log point, which must contain the result
            self._log()
            if not any(self.active):  # ended by hooks
                return self._outcome("done")
            self._evaluate()
            self._journal_notes()
            self._save_ahead()
            self._journal_checkpoint(wait=False)
            memory.maybe_trim()
            if reason := stop():
                self._checkpoint()
                self._journal_end("stopped", reason=reason)
                return reason
            if timer.due(self.frame) or timer.last_chance(before, self.frame):
                self._checkpoint(wait=False)
                timer.restart(self.frame)
        self._checkpoint()
        outcome = "done" if self.world.exhausted else "paused"
        self._journal_end(outcome)
        if outcome == "done":
            self._end_hooks("done")
        return self._outcome(outcome)

    def _end_hooks(self, outcome: Literal["done", "failed"], reason: str | None = None) -> None:
        for member, hooks in enumerate(self.hooks):
            if self.active[member]:
                hooks.end(self.frame, outcome, reason)

    def _outcome(self, outcome: str) -> str:
        return "failed" if self.failed else outcome

    def _iterate(self) -> None:
        """Collects and learns; the world takes the log points that are due."""
        compiled = activity.seconds
        self.agent.iterate(self.world)
        self.frame = self.world.frame
        self.steady = activity.seconds == compiled and self.agent.learning()

    def _check_divergence(self) -> None:
        """A member whose parameters are not finite fails; the others go on."""
        for member, diverged in enumerate(self.agent.diverged()):
            if diverged and self.active[member]:
                self.active[member] = False
                self.failed = True
                self.agent.reset_diverged(member)
                reason = f"diverged: {DIVERGED}"
                self.directories[member].journal.append("failed", frame=self.frame, reason=reason)
                self.hooks[member].end(self.frame, "failed", reason)

    def _log(self) -> None:
        """Writes the log points of this iteration, and keeps the policies of members that improved."""
        if any(recorder.pending for recorder in self.recorders):
            self._verify_claims()
        for member, recorder in enumerate(self.recorders):
            evaluation = self.evaluator.metrics(member) if self.evaluator else {}
            rows = recorder.write_log_points(self.frame, evaluation, steady=self.steady)
            if recorder.improved:
                recorder.improved = False
                self.checkpoints[member].keep_best(self.agent, self.frame)
            if self.active[member]:
                self._call_hooks(member, rows)

    def _call_hooks(self, member: int, rows: Sequence[Mapping[str, float | None]]) -> None:
        """Calls `.on_log` of a member for its new log points; a member that it ends is saved, and is done."""
        hooks, checkpoints = self.hooks[member], self.checkpoints[member]
        reasons = [hooks.log(row, lambda name: checkpoints.save_policy(name, self.agent, self.frame)) for row in rows]
        if (reason := next(filter(None, reasons), None)) and not self.world.exhausted:
            self.recorders[member].sync()
            self._journal_checkpoint()
            checkpoints.save(self.frame, self._state(member), self.claims[member].verify)
            checkpoints.wait()
            self.directories[member].journal.append("checkpoint", frame=self.frame)
            reason = f"ended by {self.sessions[member].trial.on_log}: {reason}"
            metrics = self.recorders[member].metrics.fingerprint()
            self.directories[member].journal.append("done", frame=self.frame, reason=reason, metrics=metrics)
            self.active[member] = False
            hooks.end(self.frame, "done", reason)

    def _journal_compilation(self, stack: ExitStack) -> None:
        """From here on, the journal says when a compilation begins and ends."""
        activity.on_start = lambda: self._journal("compiling")
        activity.on_end = lambda seconds, built: self._journal("compiled", seconds=round(seconds, 1), built=built)
        stack.callback(activity.forget)

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

    def _checkpoint(self, *, wait: bool = True) -> None:
        """Saves all members; with a scratch directory, returns before that is in the run directory unless `wait`."""
        self._verify_claims()
        self._journal_checkpoint()  # the one before
        for member, checkpoints in enumerate(self.checkpoints):
            if self.active[member]:
                self.recorders[member].sync()
                checkpoints.save(self.frame, self._state(member), self.claims[member].verify)
        self._saved = self.frame
        self._journal_checkpoint(wait=wait)

    def _journal_checkpoint(self, *, wait: bool = True) -> None:
        """Journals the latest checkpoint once it is in the run directory of all members."""
        if self._saved is None or not (wait or all(one.copied for one in self.checkpoints)):
            return
        for checkpoints in self.checkpoints:
            checkpoints.wait()
        frame, self._saved = self._saved, None
        self._journal("checkpoint", frame=frame)

    def _state(self, member: int) -> dict[str, Any]:
        metrics = self.recorders[member].metrics.state()
        state = {"world": self.world.state(member), "agent": self.agent.state(member), "metrics": metrics}
        return state | {"evaluation": self.evaluator.state(member)} if self.evaluator else state

    def _journal(self, event: str, **facts: object) -> None:
        self._verify_claims()
        for member, directory in enumerate(self.directories):
            if self.active[member]:
                directory.journal.append(event, **{"frame": self.frame, **facts})

    def _journal_end(self, event: str, **facts: object) -> None:
        """Journals how the sessions ended, with digests of their metrics."""
        self._verify_claims()
        for member, directory in enumerate(self.directories):
            if self.active[member]:
                metrics = {"metrics": self.recorders[member].metrics.fingerprint()} if self.recorders else {}
                directory.journal.append(event, frame=self.frame, **facts, **metrics)

    def _prepare(self, stack: ExitStack) -> None:
        """Builds environments, agent, evaluator and recorders, and restores the latest checkpoint."""
        self.hooks = [Hooks(*pair) for pair in zip(self.sessions, self.directories, strict=True)]
        self.device = resolve_device(self.trial)
        self._record_code()
        trial, seeds = self.trial, [session.seed for session in self.sessions]
        threads = trial.compute.threads
        envs = implementation(trial.env)(trial.env, len(seeds) * trial.env.num_envs, threads)
        stack.callback(envs.close)
        self.agent = self._make_agent(envs, seeds)
        self.evaluator = Evaluator(trial.evaluation, trial.env, seeds, threads) if trial.evaluation else None
        columns = self._columns(envs)
        saved = common_checkpoints(self.directories)
        self.frame = saved[0].frame if saved[0] else 0
        self.recorders = [self._recorder(one, columns, kept) for one, kept in zip(self.directories, saved, strict=True)]
        self.checkpoints = [MemberCheckpoints(one, i, self.scratch) for i, one in enumerate(self.directories)]
        for recorder, checkpoints in zip(self.recorders, self.checkpoints, strict=True):
            stack.callback(recorder.close)
            stack.callback(checkpoints.close)
        self.world = PackWorld(
            envs, trial.env.num_envs, self.budget, self.agent, self.recorders, self.active, trial.env.label
        )
        self.world.begin(seeds)
        self._restore(saved)
        self.notes = self.agent.notes()
        process = {"host": socket.gethostname(), "pid": os.getpid(), "members": len(seeds), "device": self.device}
        for directory, version in zip(self.directories, self.versions, strict=True):
            code = {} if version is None else {"code": version.digest}
            directory.journal.append("started", frame=self.frame, **process | self.notes | code)

    def _recorder(self, directory: SessionDir, columns: Sequence[str], saved: Checkpoint | None) -> Recorder:
        metrics = saved.state.get("metrics") if saved else None
        recorder = Recorder(directory, columns, directory.read_state().seconds, metrics, self.frame)
        if saved and saved.damaged:
            self._fall_back(directory, f"{'; '.join(saved.damaged)}: resumed from frame {saved.frame:,}")
        if recorder.restored:
            self._fall_back(directory, recorder.restored)
        return recorder

    def _fall_back(self, directory: SessionDir, reason: str) -> None:
        """Journals and prints what damaged files made this process do."""
        directory.journal.append("fallback", frame=self.frame, reason=reason)
        _tell(f"{directory.id}: {reason}")

    def _columns(self, envs: VectorEnv) -> tuple[str, ...]:
        """The columns of metrics.csv beside those of every session."""
        columns = (*self.agent.columns, *(EVALUATION_COLUMNS if self.evaluator else ()))
        if taken := [name for name in envs.episode_metrics if name in (*COLUMNS, *columns)]:
            raise SpecError(f"{self.trial.env.label}: the metric {taken[0]} has the name of a column of metrics.csv")
        return (*columns, *envs.episode_metrics)

    def _refuse_other_code(self) -> None:
        """Raises `OtherCode` if a session was started with other code, unless it is to be continued nevertheless."""
        for directory, version in zip(self.directories, self.versions, strict=True):
            state = directory.read_state()
            saved = state.checkpoint_frame is not None  # otherwise it starts from zero
            if version and saved and state.code not in (None, version.digest) and not self.any_code:
                raise OtherCode(
                    f"{directory.id} was started with other code: `train --continue` resumes it with the present code, "
                    "`train --redo` sets it aside and trains it again"
                )

    def _record_code(self) -> None:
        """Writes the provenance of every session, and keeps the sources that it depends on."""
        origin = self.origin._replace(facts={**self.origin.facts, "device": self.device})
        for directory, version in zip(self.directories, self.versions, strict=True):
            write_provenance(directory.path, origin.with_code(version))
            if version is not None:
                save_sources(directory.path.parents[2], version)

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
                compute=trial.compute.with_(device=self.device),
            )
        )

    def _initialize(self, member: int, init: InitFrom) -> None:
        """Starts a member from the weights of another session."""
        directory, seed = self.directories[member], self.sessions[member].seed
        facts = load_initial_weights(self.agent, member, init, seed, directory.path.parents[2])
        directory.journal.append("initialized", frame=0, **facts)

    def _restore(self, saved: Sequence[Checkpoint | None]) -> None:
        """Resumes every member from the latest checkpoint that all of them have, if there is one."""
        new_episodes = self.frame > 0 and not self.world.envs.exact_resume
        if new_episodes:
            self.world.begin([session.seed for session in self.sessions], f"from {self.frame}")
        for member, checkpoint in enumerate(saved):
            if checkpoint is not None:
                self.world.restore(member, checkpoint.state["world"], checkpoint.frame)
                self.agent.restore(member, checkpoint.state["agent"])
                if self.evaluator:
                    self.evaluator.restore(member, checkpoint.state["evaluation"])
            elif self.trial.init_from is not None:
                self._initialize(member, self.trial.init_from)
        if new_episodes:
            self.agent.forget_episodes()
        for directory, recorder, checkpoints in zip(self.directories, self.recorders, self.checkpoints, strict=True):
            if problem := checkpoints.load_best(self.agent, self.frame):
                recorder.restart_best()
                self._fall_back(directory, problem)


def open_directories(runs: Path, sessions: Sequence[Session]) -> list[SessionDir]:
    """The sessions' directories; creates those that do not exist, and refuses those of other sessions."""
    return [_open_directory(runs, one) for one in sessions]


def _open_directory(runs: Path, session: Session) -> SessionDir:
    directory = SessionDir.create(runs, session.directory, session.record(), session_gin(session))
    directory.repair_session(session.record())
    found = Session.from_record(directory.read_session(), session.directory)
    if found.trial.id != session.trial.id:
        raise SpecError(f"{directory.session} is that of trial {found.trial.id}, not {session.trial.id}")
    return directory


def _tell(sentence: str) -> None:
    print(f"rldsl: {sentence}", file=sys.stderr, flush=True)  # noqa: T201 (the log of the session)


def _sentence(error: BaseException) -> str:
    if isinstance(error, SpecError | StoreError | EnvError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]
