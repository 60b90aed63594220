"""The command `search`: runs the searches of a file one after the other and shows how they go."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from rldsl.cli.options import Choice
from rldsl.cli.run import INTERRUPTED, command, invocation
from rldsl.cli.tables import echo, escape
from rldsl.launch.follow import stop_signals
from rldsl.launch.observer import FollowedSession
from rldsl.launch.queues import Queues
from rldsl.launch.search import SearchResult
from rldsl.launch.search_detach import detach_search, find_driver, follow_driver
from rldsl.launch.search_run import SearchRequest, run_search
from rldsl.launch.search_state import search_dir
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.report.words import count, value
from rldsl.search.failures import describe_failures, same_reason
from rldsl.search.history import History, TrialHistory
from rldsl.search.schedule import Schedule, schedule_of
from rldsl.store.journal import Event


def search(choice: Choice, runs: Path, *, on: str | None, detach: bool, fail_fast: bool, retry_failed: bool) -> int:
    """Runs the searches of the file; returns the exit code of the command."""
    searches = choice.experiments(sampled=True, on=on)
    make_plan(searches)  # refuses experiments that cannot be told apart
    requests = [SearchRequest(one, runs, choice.file, invocation(), fail_fast, retry_failed) for one in searches]
    return _detach(requests) if detach else _run(requests)


def resume_searches(searches: Sequence[Overridden], runs: Path, file: Path, *, moved: bool, detach: bool) -> int:
    """Continues those searches that were started: where they ran before, unless they are `moved` to a launcher."""
    requests = []
    for one in searches:
        if (directory := search_dir(one, runs)).exists():
            launcher = one.experiment.launcher if moved else directory.experiment().launcher
            experiment = one.experiment.model_copy(update={"launcher": launcher})
            requests.append(SearchRequest(replace(one, experiment=experiment), runs, file, invocation()))
    return _detach(requests) if detach else _run(requests)


def _detach(requests: Sequence[SearchRequest]) -> int:
    for request in requests:
        record = detach_search(request)
        kind = "process" if record.backend == "local" else f"{record.backend} job"
        echo(f"{request.experiment.name}: {kind} {record.job_id} drives the search")
    echo("`status` shows how it stands, `stop` ends it, `resume` continues it")
    return 0


def _run(requests: Sequence[SearchRequest]) -> int:
    """Runs searches one after the other, or follows their detached drivers."""
    code = 0
    for request in requests:
        display = SearchLines(request.experiment.name, schedule_of(request.experiment))
        result = _run_or_follow(request, display)
        display.show_best(result.history)
        if result.outcome == "stopped":
            echo(f"stopped; nothing is lost: [bold]{command()}[/bold] continues")
            return INTERRUPTED
        if result.outcome == "unfollowed":
            echo(f"jobs keep running: `status` shows them, `stop` ends them, [bold]{command()}[/bold] continues")
            return INTERRUPTED
        code = max(code, _show_failures(result))
    return code


def _run_or_follow(request: SearchRequest, display: SearchLines) -> SearchResult:
    queues = Queues(request.runs)
    driver = find_driver(request.directory, queues)
    queues.refuse_errors()
    if driver.job is None or not driver.description:
        return run_search(request, display)
    echo(f"{request.experiment.name} is driven by {escape(driver.description)}; Ctrl-C leaves it running")
    with stop_signals() as stop:
        return follow_driver(driver, request.runs, display, stop)


def _show_failures(result: SearchResult) -> int:
    """Each reason once; returns the exit code: a search may have failed trials, unless they stopped it."""
    if result.problem is not None:
        echo(f"[red]stopped: {escape(result.problem)}[/red]")
        echo(f"[bold]{command()} --retry-failed[/bold] trains failed trials again")
        return 1
    if failed := sum(trial.failed is not None for trial in result.history.trials):
        echo(f"[yellow]{count(failed, 'trial')} failed: {escape(describe_failures(result.history))}[/yellow]")
    return 0


class SearchLines:
    """Prints a line for each result of a search. A `SearchObserver`."""

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name, self.schedule = name, schedule
        self._reasons: dict[str, int] = {}

    def journalled(self, event: Event, history: History) -> None:
        trial = history.trials[event["trial"]]
        if event["event"] == "finished":
            self._print(f"trial {trial.number}: {self._value(trial)}{self._rung(event['rung'])}  {_settings(trial)}")
        elif event["event"] == "failed":
            first = self._reasons.setdefault(same_reason(event["reason"]), trial.number)
            reason = event["reason"] if first == trial.number else f"as trial {first}"
            self._print(f"trial {trial.number}: [red]failed[/red], {escape(reason)}  {_settings(trial)}")

    def progress(self, history: History, running: Collection[FollowedSession]) -> None: ...

    def stopping(self, requests: int) -> None:
        if requests == 1:
            self._print("[yellow]stopping: each session checkpoints first; Ctrl-C again kills them[/yellow]")

    def show_best(self, history: History) -> None:
        """The best trial of the highest rung."""
        ended = [trial for trial in history.trials if trial.values and trial.failed is None]
        if not ended:
            return
        score = self.schedule.objective.score
        best = max(ended, key=lambda trial: (trial.reached, score(trial.values[trial.reached or 0].values())))
        echo(f"[bold]{self.name}[/bold]: best score {self._value(best)} at {_settings(best)}")

    def _value(self, trial: TrialHistory) -> str:
        return f"{self.schedule.objective.value(trial.values[trial.reached or 0].values()):.1f}"

    def _rung(self, rung: int) -> str:
        return f" at {self.schedule.frames[rung]:,} frames" if self.schedule.rungs > 1 else ""

    def _print(self, text: str) -> None:
        echo(text)
        sys.stdout.flush()


def _settings(trial: TrialHistory) -> str:
    return escape(", ".join(f"{path} = {value(setting)}" for path, setting in trial.point.items()))
