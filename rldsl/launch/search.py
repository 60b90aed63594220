"""The driver of a search: it decides, starts packs of sessions, and journals their results.

Every decision is a function of the search's journal, and is journalled before the work begins. What a killed driver
left behind is found on the disk: the results of sessions that have reached their rung are journalled, sessions that
still run are waited for, and the others resume from their checkpoints.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rldsl.launch.devices import has_gpus
from rldsl.launch.follow import StopSignals, sleep
from rldsl.launch.search_backend import Ended, SearchBackend, SearchPack
from rldsl.launch.search_observer import SearchObserver
from rldsl.launch.search_packs import Work, WorkItem
from rldsl.launch.search_trials import SearchTrials
from rldsl.launch.select import refuse_unimplemented
from rldsl.plan.existing import PlannedSession
from rldsl.search.failures import FailureRules
from rldsl.search.history import History, TrialHistory
from rldsl.search.objective import session_value
from rldsl.search.schedule import Finished, Promote, Wait, decide, schedule_of
from rldsl.search.suggest import suggester
from rldsl.spec.errors import SpecError
from rldsl.spec.session import session_id
from rldsl.store.integrity import metrics_damage
from rldsl.store.search_dir import SearchDir
from rldsl.store.session_dir import SessionDir

ATTEMPTS = 3
"""How many times the process of a session may be killed before its trial counts as failed."""


@dataclass(frozen=True)
class SearchResult:
    """How a driver ended."""

    outcome: Literal["finished", "stopped", "unfollowed", "failed"]
    """`stopped`: by the user; `unfollowed`: the user left, the jobs continue; `failed`: too many trials failed."""
    history: History
    problem: str | None = None
    """Why it failed."""


class SearchDriver:
    """Drives one search from its journal to its end. The caller holds the claim on its directory."""

    def __init__(
        self, directory: SearchDir, runs: Path, backend: SearchBackend, observer: SearchObserver, rules: FailureRules
    ) -> None:
        self.directory, self.runs, self.backend, self.observer, self.rules = directory, runs, backend, observer, rules
        experiment = directory.experiment()
        self.schedule, self.suggester = schedule_of(experiment), suggester(experiment)
        self.launcher = experiment.launcher
        self.trials = SearchTrials(directory, runs, self.schedule.seeds[-1])
        self.history = History.of(directory.events())
        self._kills: Counter[str] = Counter()
        self._retried: set[str] = set()

    def run(self, stop: StopSignals, *, retry_failed: bool = False) -> SearchResult:
        """Runs the search until it is finished, or until the user or failed trials stop it."""
        try:
            if retry_failed:
                self._retry_failed()
            self._adopt()
            return self._loop(stop)
        except BaseException:
            self.backend.abort()
            raise

    def _loop(self, stop: StopSignals) -> SearchResult:
        handled, problem = 0, None
        while True:
            if stop.count > handled:
                handled = stop.count
                if not self.backend.interrupt(handled):
                    return SearchResult("unfollowed", self.history)
                self.observer.stopping(handled)
            self._collect_ended(self.backend.poll())
            if not handled and problem is None:
                self._start_work()
            if problem is None and (problem := self.rules.reason_to_stop(self.history)):
                self.backend.cancel()
            self.observer.progress(self.history, self.trials.running(self.backend.busy))
            if not self.backend.busy and (outcome := self._outcome(handled > 0, problem)):
                return outcome
            sleep(self.backend.pause(), stop, handled)

    def _outcome(self, stopped: bool, problem: str | None) -> SearchResult | None:
        """How the search has ended, now that nothing runs; None if it goes on."""
        if problem is not None:
            return SearchResult("failed", self.history, problem)
        if isinstance(decide(self.history, self.schedule), Finished):
            return SearchResult("finished", self.history)
        return SearchResult("stopped", self.history) if stopped else None

    def _append(self, event: str, **facts: Any) -> None:
        self.directory.append(event, **facts)
        self.history = self.history.after(recorded := {"event": event, **facts})
        self.observer.journalled(recorded, self.history)

    # --- what an earlier driver left ---------------------------------------------

    def _adopt(self) -> None:
        """Journals results that an earlier driver did not see, and follows sessions that it started and still run."""
        running = [trial for trial in self.history.trials if trial.running]
        items = [item for trial in running for item in self._items(trial)]
        self.backend.adopt([SearchPack([item.planned], item.until) for item in items])
        self.trials.follow([item.planned for item in items if item.planned.id in self.backend.busy])
        for trial in running:
            self._collect(trial)

    def _retry_failed(self) -> None:
        """Failed trials are trained again; those whose settings do not fit together fail again."""
        for trial in self.history.trials:
            if trial.failed is not None and trial.started is not None:
                self._append("retried", trial=trial.number, rung=trial.started)
                sessions = self.trials.sessions(trial, self.schedule.seeds[trial.started])
                self._retried |= {planned.id for planned in sessions if planned.state == "failed"}

    # --- results -------------------------------------------------------------------

    def _collect_ended(self, ended: Sequence[Ended]) -> None:
        """Journals what has become of the trials whose sessions have ended, in the order of the trials."""
        problems, failed = {one.id: one.problem for one in ended}, self.trials.newly_failed()
        for trial in self.history.trials if problems or failed else ():
            if trial.running and self._session_ids(trial) & (problems.keys() | failed):
                self._collect(trial, problems, failed)

    def _collect(
        self, trial: TrialHistory, problems: Mapping[str, str | None] | None = None, failed: Collection[str] = ()
    ) -> None:
        """Journals the result of a trial if all its seeds have reached the rung, or its failure if one has failed."""
        items = list(self._items(trial))
        for item in items:
            if reason := self._failure(item, (problems or {}).get(item.planned.id), failed):
                self._append("failed", trial=trial.number, rung=trial.started, reason=reason)
                return
        if items:
            return
        if damage := next(filter(None, map(self._damage, self._sessions(trial))), None):
            self._append("failed", trial=trial.number, rung=trial.started, reason=damage)
        else:
            self._append("finished", trial=trial.number, rung=trial.started, **self._values(trial))

    def _damage(self, planned: PlannedSession) -> str | None:
        damage = metrics_damage(SessionDir(self.runs / planned.directory).metrics, planned.on_disk)
        return damage and f"{planned.id}: {damage}"

    def _failure(self, item: WorkItem, problem: str | None, failed: Collection[str]) -> str | None:
        """Why a session counts as failed. One whose process was killed is started again, but not for ever."""
        state, id = item.planned.on_disk, item.planned.id
        if state.state == "failed":
            before = id in self.backend.busy and id not in failed  # it is being trained again
            return None if before or item.alone or id in self._retried else state.reason or "failed"
        if problem is None or state.state == "running":
            return None
        self._kills[id] += 1
        if self._kills[id] < ATTEMPTS:
            return None
        return ": ".join(filter(None, [problem, self.trials.last_log_line(item.planned)]))

    def _values(self, trial: TrialHistory) -> dict[str, Any]:
        """The facts of `finished`: the value of each seed at the rung, and the seconds since the rung before."""
        until, last = self.schedule.until(trial.started or 0), self.schedule.objective.last
        read = {
            planned.seed: session_value(SessionDir(self.runs / planned.directory).metrics, until, last)
            for planned in self._sessions(trial)
        }
        values = {str(seed): None if math.isnan(one.value) else one.value for seed, one in read.items()}
        return {"values": values, "seconds": round(sum(one.seconds for one in read.values()) - trial.seconds, 3)}

    # --- decisions and work ----------------------------------------------------------

    def _start_work(self) -> None:
        """Decides as long as there is room for another trial, and starts what is to be trained."""
        free = self.backend.capacity()
        if not free or self._should_stop():
            return
        work = Work(free, self.launcher.members, self.backend.busy, has_gpus(self.launcher))
        for trial in self.history.trials:
            work.add(self._unfinished(trial) if trial.running else ())
        work.limit_new(self._unsuggested(), self.backend.workers, self.trials.experiment)
        while not self._should_stop() and (decided := self._decide(work)) is not None:
            work.add(decided)
        if not self._should_stop() and (packs := work.packs()):
            self._start(packs)

    def _should_stop(self) -> bool:
        return self.rules.reason_to_stop(self.history) is not None

    def _unfinished(self, trial: TrialHistory) -> list[WorkItem]:
        """The sessions that a trial still needs. A process that is not the driver's may have trained them, or does."""
        items = list(self._items(trial))
        if not items:
            self._collect(trial)
        return [item for item in items if item.planned.state != "running"]

    def _unsuggested(self) -> int:
        """Sessions of the first rung whose trials were not suggested yet."""
        return max(0, self.schedule.trials - len(self.history.trials)) * len(self.schedule.seeds[0])

    def _start(self, packs: Sequence[SearchPack]) -> None:
        sessions = [planned for pack in packs for planned in pack.sessions]
        self.trials.follow(sessions)
        self.backend.start(self.trials.write_plan(sessions), packs)
        self._retried -= {planned.id for planned in sessions}

    def _decide(self, work: Work) -> list[WorkItem] | None:
        """Makes and journals the next decision: what it adds to the work. None if there is none, or no room for it."""
        decision = decide(self.history, self.schedule)
        if isinstance(decision, Wait | Finished):
            return None
        rung = decision.rung if isinstance(decision, Promote) else 0
        if decision.trial == len(self.history.trials):
            if not work.has_room_for_new():
                return None
            self._suggest(decision.trial)
        trial = self.history.trials[decision.trial]
        if problem := self._invalid(trial):
            self._append("failed", trial=trial.number, rung=rung, reason=problem)
            return []
        items = list(self._items(trial, rung))
        if not work.has_room_for(items):
            return None
        self._append("started", trial=trial.number, rung=rung, seeds=list(self.schedule.seeds[rung]))
        if not items:  # its sessions exist: of an earlier search, or of a driver whose last events were lost
            self._collect(self.history.trials[trial.number])
        return items

    def _suggest(self, number: int) -> None:
        point = self.suggester.point(self.directory.events())
        assert point is not None, "the schedule has more trials than the suggester"
        try:
            id = self.trials.make(number, point).id
        except SpecError:
            id = ""  # a combination of valid settings that is not valid: it fails
        self._append("suggested", trial=number, point=point, id=id)

    def _invalid(self, trial: TrialHistory) -> str | None:
        """Why a trial cannot be trained anywhere; raises `SpecError` if only this machine cannot train it."""
        try:
            row = self.trials.row(trial)
        except SpecError as error:
            return error.sentence
        refuse_unimplemented(row)
        if self.launcher.same_python and (missing := row.trial.env.missing()):
            raise SpecError(f"{row.experiment} cannot run here: {missing}")
        return None

    def _session_ids(self, trial: TrialHistory) -> set[str]:
        return {session_id(trial.id, seed) for seed in self.schedule.seeds[trial.started or 0]}

    def sessions_of(self, trial: TrialHistory) -> list[PlannedSession]:
        """The sessions that a trial has had so far."""
        return [] if trial.started is None else self._sessions(trial)

    def _sessions(self, trial: TrialHistory, rung: int | None = None) -> list[PlannedSession]:
        return self.trials.sessions(trial, self.schedule.seeds[(trial.started or 0) if rung is None else rung])

    def _items(self, trial: TrialHistory, rung: int | None = None) -> Iterator[WorkItem]:
        """The sessions of a trial that have not reached a rung: by default, the one that it was started for."""
        until = self.schedule.until((trial.started or 0) if rung is None else rung)
        for planned in self._sessions(trial, rung):
            if not planned.on_disk.reached(until):
                yield WorkItem(planned, until, self.trials.crashed_in_a_pack(planned))
