"""Journals of searches that were never trained: real decisions on made-up values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rldsl import PPO, Classic, experiment, log_uniform, uniform
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.expand import expand
from rldsl.search.history import History
from rldsl.search.schedule import Promote, StartNew, decide, schedule_of
from rldsl.spec.experiment import Experiment

Event = dict[str, Any]
Value = Callable[[Mapping[str, Any], int, int], float]
"""The value of a point after some frames with a seed."""

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=8)).agent(PPO()).frames(9e4).seeds(2)
AXES: dict[str, Any] = {"gamma": uniform(0.9, 0.99), "lr": log_uniform(1e-4, 1e-2)}


def asha(trials: int = 12, base: ExperimentBuilder = CARTPOLE) -> Experiment:
    """A search with rungs at 10k, 30k and 90k frames."""
    return base.search(**AXES).asha(trials=trials, grace=1e4, eta=3).build()


def linear(point: Mapping[str, Any], frames: int, seed: int) -> float:
    """Rises with gamma and with the frames; seeds differ a little."""
    return 1000 * (point["agent.gamma"] - 0.9) * frames / 9e4 + seed % 10 / 100


@dataclass
class Recorder:
    """Decides as a driver does; sessions end in the order in which they were started."""

    searched: Experiment
    value: Value
    fails: Collection[int]
    workers: int
    journal: list[Event] = field(default_factory=list)
    history: History = field(default_factory=History)

    def run(self, most: int) -> list[Event]:
        """The first `most` events."""
        self.schedule, self.planned = schedule_of(self.searched), list(expand(self.searched))
        running: deque[tuple[int, int]] = deque()
        while len(self.journal) < most:
            decision = decide(self.history, self.schedule) if len(running) < self.workers else None
            if isinstance(decision, StartNew | Promote):
                running.append(self.start(decision))
            elif running:
                self.end(*running.popleft())
            else:
                break
        return self.journal[:most]

    def start(self, decision: StartNew | Promote) -> tuple[int, int]:
        number, rung = decision.trial, decision.rung if isinstance(decision, Promote) else 0
        if number == len(self.history.trials):
            row = self.planned[number]
            self.append("suggested", trial=number, point=row.differs, id=row.trial.id)
        self.append("started", trial=number, rung=rung, seeds=list(self.schedule.seeds[rung]))
        return number, rung

    def end(self, number: int, rung: int) -> None:
        if number in self.fails:
            self.append("failed", trial=number, rung=rung, reason="diverged: its parameters are not finite")
            return
        frames, point = self.schedule.frames, self.planned[number].differs
        values = {str(seed): self.value(point, frames[rung], seed) for seed in self.schedule.seeds[rung]}
        seconds = (frames[rung] - (frames[rung - 1] if rung else 0)) / 1000
        self.append("finished", trial=number, rung=rung, values=values, seconds=seconds)

    def append(self, event: str, **facts: Any) -> None:
        self.journal.append({"event": event, **facts})
        self.history = self.history.after(self.journal[-1])


def record(
    searched: Experiment, value: Value = linear, fails: Collection[int] = (), workers: int = 2, most: int = 100_000
) -> list[Event]:
    """The journal of a search with made-up values; `fails` are the numbers of trials that fail."""
    return Recorder(searched, value, fails, workers).run(most)
