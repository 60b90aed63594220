"""Sample sessions in every state, written with the real writers of the store."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from rldsl import PPO, Classic, Random, experiment
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.expand import expand
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.search.identity import search_id
from rldsl.spec.gin_text import session_gin
from rldsl.spec.session import Session
from rldsl.store.journal import Event
from rldsl.store.metrics import MetricsWriter
from rldsl.store.search_dir import SearchDir
from rldsl.store.session_dir import SessionDir

COLUMNS = (
    "frame",
    "seconds",
    "fps",
    "episodes",
    "episode_return",
    "episode_return_ma",
    "length",
    "policy_loss",
    "entropy",
)


def sessions_of(builder: ExperimentBuilder) -> list[Session]:
    """All sessions of an experiment."""
    return [one for row in make_plan([Overridden(builder.build())]).rows() for one in row.sessions()]


def cartpole(name: str = "cartpole") -> ExperimentBuilder:
    env = Classic("CartPole-v1", num_envs=8)
    return experiment(name).env(env).agent(PPO()).frames(1e5).seeds(2).target(450)


def row(frame: int, value: float) -> dict[str, Any]:
    """A log point."""
    seconds = frame / 1000
    numbers = {
        "seconds": seconds,
        "fps": 1000.0,
        "episodes": frame // 100,
        "episode_return": value,
        "episode_return_ma": value,
    }
    return {"frame": frame, **numbers, "length": value, "policy_loss": -0.01, "entropy": 0.6}


def make(runs: Path, session: Session) -> SessionDir:
    """The directory of a session that has not started."""
    return SessionDir.create(runs, session.directory, session.record(), session_gin(session))


def write_points(directory: SessionDir, points: Sequence[tuple[int, float]]) -> None:
    writer = MetricsWriter(directory.metrics, COLUMNS)
    for frame, value in points:
        writer.write(row(frame, value))


def append_events(directory: SessionDir, *events: tuple[str, dict[str, Any]]) -> None:
    for name, fields in events:
        directory.journal.append(name, **fields)


def started() -> tuple[str, dict[str, Any]]:
    return "started", {"frame": 0, "host": os.uname().nodename, "pid": os.getpid(), "members": 1}


def make_done(runs: Path, session: Session, best: float = 400.0, points: int = 20) -> SessionDir:
    """A finished session with a curve that rises linearly to `best`."""
    directory = make(runs, session)
    frames = session.trial.budget.frames
    steps = [frames * index // points for index in range(1, points + 1)]
    write_points(directory, [(frame, best * frame / frames) for frame in steps])
    host = os.uname().nodename
    append_events(
        directory,
        ("started", {"frame": 0, "host": host}),
        ("checkpoint", {"frame": frames}),
        ("done", {"frame": frames}),
    )
    return directory


def make_failed(runs: Path, session: Session, reason: str) -> SessionDir:
    directory = make(runs, session)
    write_points(directory, [(1000, 12.0)])
    append_events(
        directory, ("started", {"frame": 0, "host": os.uname().nodename}), ("failed", {"frame": 1000, "reason": reason})
    )
    return directory


def make_stopped(runs: Path, session: Session, frame: int = 40_000) -> SessionDir:
    directory = make(runs, session)
    write_points(directory, [(frame // 2, 100.0), (frame, 180.0)])
    append_events(directory, started(), ("checkpoint", {"frame": frame}))
    append_events(directory, ("stopped", {"frame": frame, "reason": "asked to stop (SIGTERM)"}))
    return directory


@contextmanager
def running(runs: Path, session: Session, frame: int = 20_000, value: float = 90.0) -> Iterator[SessionDir]:
    """A running session, held by this process."""
    directory = make(runs, session)
    with directory.claim():
        append_events(directory, started())
        write_points(directory, [(frame // 2, value / 2), (frame, value)])
        yield directory


class TrainingProcess:
    """A process that holds running sessions. SIGTERM makes it stop them, once `may_stop` is set, as it is at first."""

    def __init__(self, directories: Sequence[SessionDir]) -> None:
        fork = multiprocessing.get_context("fork")
        self.directories, self.began = directories, fork.Event()
        self.asked, self.may_stop = fork.Event(), fork.Event()
        self.may_stop.set()
        self.process = fork.Process(target=self._train, daemon=True)
        self.process.start()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def _train(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        with ExitStack() as claims:
            for directory in self.directories:
                claims.enter_context(directory.claim())
                append_events(directory, started())
                write_points(directory, [(10_000, 45.0), (20_000, 90.0)])
            self.began.set()
            signal.sigwait({signal.SIGTERM})
            self.asked.set()
            self.may_stop.wait()
            for directory in self.directories:
                append_events(directory, ("stopped", {"frame": 20_000, "reason": "asked to stop (SIGTERM)"}))

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@contextmanager
def training(runs: Path, *sessions: Session) -> Iterator[TrainingProcess]:
    """A process of its own that trains these sessions."""
    process = TrainingProcess([make(runs, session) for session in sessions])
    try:
        assert process.began.wait(60)
        yield process
    finally:
        process.kill()


def make_search(runs: Path, builder: ExperimentBuilder, events: Iterable[Mapping[str, Any]]) -> SearchDir:
    """The directory of a search with this journal."""
    searched = builder.build()
    directory = SearchDir.create(runs, searched, search_id(searched))
    for event in events:
        directory.append(**event)
    return directory


def finished_trials(builder: ExperimentBuilder, values: Sequence[float], **points: Sequence[Any]) -> Iterator[Event]:
    """The journal of a search whose trials have these values; `points` replaces their settings."""
    for number, (planned, value) in enumerate(zip(expand(builder.build()), values, strict=True)):
        point = planned.differs | {f"agent.{name}": chosen[number] for name, chosen in points.items()}
        seeds = list(builder.build().session_seeds)
        yield {"event": "suggested", "trial": number, "point": point, "id": planned.trial.id}
        yield {"event": "started", "trial": number, "rung": 0, "seeds": seeds}
        result = {"values": dict.fromkeys(map(str, seeds), value), "seconds": 100.0}
        yield {"event": "finished", "trial": number, "rung": 0, **result}


def make_many(runs: Path, count: int, seeds: int = 4, trials: int = 25) -> None:
    """Creates many finished sessions quickly, without fsync."""
    sync, os.fsync = os.fsync, lambda fd: None
    try:
        made = 0
        for number in range(count):
            base = cartpole(f"load-{number:04d}").seeds(seeds).frames(100_000 + number)
            for index in range(trials):
                for session in sessions_of(base.agent(PPO(gamma=round(0.9 + index / 1000, 4)))):
                    if made >= count:
                        return
                    make_done(runs, session, points=10)
                    made += 1
    finally:
        os.fsync = sync


def write_live(runs: Path, session: Session, every: float, ready: Any) -> None:
    """Holds a session and writes a log point every `every` seconds until the process is killed."""
    directory = make(runs, session)
    with suppress(KeyboardInterrupt), directory.claim():
        append_events(directory, started())
        writer = MetricsWriter(directory.metrics, COLUMNS)
        frame = 0
        ready.release()
        while True:
            frame += 50
            writer.write(row(frame, frame / 100))
            time.sleep(every)


@contextmanager
def live_writers(runs: Path, count: int, every: float = 1.0) -> Iterator[list[SessionDir]]:
    """Processes that each write to a session of their own."""
    fork = multiprocessing.get_context("fork")
    ready = fork.Semaphore(0)
    sessions = sessions_of(cartpole("live").agent(Random()).seeds(count))
    processes = [fork.Process(target=write_live, args=(runs, one, every, ready), daemon=True) for one in sessions]
    for process in processes:
        process.start()
    try:
        for _ in processes:
            ready.acquire(timeout=60)
        yield [SessionDir(runs / one.directory) for one in sessions]
    finally:
        for process in processes:
            process.kill()
            process.join()
