"""Attempts at training a pack: `python -m rldsl.train` processes, forked from one that has imported torch."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.spec.budget import Seeds
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.session import Session
from tests.agents import tiny  # noqa: F401  (a process that reads a plan must know its environments)
from tests.project import rows, until
from tests.train import walks  # noqa: F401  (the same)

server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(["tests.train.warm"])


class Attempts:
    """Sessions of a plan file, trained as one pack in a run directory by one process after the other.

    A replay buffer of more than sixteen times `segment_bytes` is large: it is saved ahead of checkpoints.
    """

    def __init__(self, runs: Path, *sessions: Session, segment_bytes: int | None = None) -> None:
        self.sessions = sessions
        self.segment_bytes = segment_bytes
        self.runs = runs
        self.paths = [runs / one.directory for one in sessions]
        self.plan = runs.with_suffix(".json")
        runs.parent.mkdir(parents=True, exist_ok=True)
        make_plan([Overridden(_experiment(number, one)) for number, one in enumerate(sessions)]).save(self.plan)

    def start(self, *options: str) -> BaseProcess:
        names = [word for one in self.sessions for word in ("--session", one.id)]
        arguments = [str(self.plan), "--runs", str(self.runs), *names, *options]
        process = server.Process(target=_main, args=(arguments, self.segment_bytes))
        process.start()
        return process

    def run_to_end(self, *options: str) -> int:
        """Trains until the process ends by itself; returns its exit code."""
        process = self.start(*options)
        process.join(60)
        assert process.exitcode is not None
        return process.exitcode

    def kill(self, points: int, later: float) -> None:
        """Trains, and kills the process `later` seconds after the given number of log points are written."""
        process = self.start()
        until(lambda: len(rows(self.paths[0])) >= points or not process.is_alive())
        process.join(later)
        process.kill()
        process.join()
        assert process.exitcode == -9, "it ended by itself before it could be killed"


def moments(name: str, points: int) -> list[tuple[int, float]]:
    """Three moments at which to kill a session: log points and seconds after them, the same for the same name."""
    random = Random(name)
    return [(points, random.uniform(0, 0.01)) for points in sorted(random.sample(range(1, points - 5), 3))]


def _experiment(number: int, one: Session) -> Experiment:
    fields = {name: getattr(one.trial, name) for name in Trial.model_fields}
    return Experiment(name=f"test{number}", seeds=Seeds(1, first=one.seed), **fields)


def _main(arguments: list[str], segment_bytes: int | None) -> None:
    from rldsl.memory import replay
    from rldsl.train.__main__ import main

    replay.SEGMENT_BYTES = segment_bytes or replay.SEGMENT_BYTES
    sys.exit(main(arguments))
