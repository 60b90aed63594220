"""ASHA written from the paper, with the state that its workers share: Li et al. (2020), Algorithm 2, `get_job`.

It remembers what was promoted instead of reading a journal, and knows nothing of the package. Added to the paper: a
rung decides nothing before it has `min_results`, failed trials are the worst results of their rung, and the number of
trials is limited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WORST = float("-inf")


@dataclass
class ReferenceAsha:
    trials: int
    rungs: int
    eta: int
    min_results: int
    results: dict[int, dict[int, float]] = field(default_factory=dict)
    """Score by rung and trial."""
    promoted: dict[int, set[int]] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    suggested: int = 0

    def top(self, rung: int, size: int) -> list[int]:
        scores = self.results.get(rung, {})
        return sorted(scores, key=lambda trial: (trial in self.failed_at(rung), -scores[trial], trial))[:size]

    def failed_at(self, rung: int) -> set[int]:
        return {trial for trial, score in self.results.get(rung, {}).items() if score == WORST and trial in self.failed}

    def get_job(self) -> tuple[int, int] | str:
        if job := self.promotable(self.min_results):
            return job
        if self.suggested < self.trials:
            self.suggested += 1
            return self._run(self.suggested - 1, 0)
        if self.running:
            return "wait"
        return self.promotable(0) or self.carry_on() or "finished"

    def promotable(self, min_results: int) -> tuple[int, int] | None:
        for rung in range(self.rungs - 2, -1, -1):
            size = len(self.results.get(rung, {}))
            if size < min_results:
                continue
            for trial in self.top(rung, size // self.eta):
                if trial not in self.promoted.setdefault(rung, set()) and trial not in self.failed:
                    self.promoted[rung].add(trial)
                    return self._run(trial, rung + 1)
        return None

    def carry_on(self) -> tuple[int, int] | None:
        """The best trial of the highest rung, if none has trained to the end."""
        for rung in range(self.rungs - 1, -1, -1):
            alive = [trial for trial in self.top(rung, self.trials) if trial not in self.failed]
            if alive and rung < self.rungs - 1:
                self.promoted.setdefault(rung, set()).add(alive[0])
                return self._run(alive[0], rung + 1)
            if rung == self.rungs - 1 and any(
                trial not in self.failed_at(rung) for trial in self.results.get(rung, {})
            ):
                return None
        return None

    def _run(self, trial: int, rung: int) -> tuple[int, int]:
        self.running.add(trial)
        return trial, rung

    def report(self, trial: int, rung: int, score: float | None) -> None:
        self.running.discard(trial)
        if score is None:
            self.failed.add(trial)
        self.results.setdefault(rung, {})[trial] = WORST if score is None else score


@dataclass
class ReferenceStopping:
    """The stopping variant: each trial is judged once, when it arrives at a rung."""

    trials: int
    rungs: int
    eta: int
    min_results: int
    results: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    continues: list[tuple[int, int]] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    suggested: int = 0

    def get_job(self) -> tuple[int, int] | str:
        if self.continues:
            trial, rung = self.continues.pop(0)
            self.running.add(trial)
            return trial, rung + 1
        if self.suggested < self.trials:
            self.suggested += 1
            self.running.add(self.suggested - 1)
            return self.suggested - 1, 0
        return "wait" if self.running else "finished"

    def report(self, trial: int, rung: int, score: float | None) -> None:
        self.running.discard(trial)
        here = self.results.setdefault(rung, [])
        here.append((float("inf") if score is None else -score, trial))
        if score is None or rung == self.rungs - 1:
            return
        better = sum(other < here[-1] for other in here)
        if len(here) < self.min_results or better + 1 <= len(here) / self.eta:
            self.continues.append((trial, rung))
