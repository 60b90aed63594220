"""The command `search`: runs the searches of a file one after the other and shows how they go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rldsl.cli.options import Choice
from rldsl.cli.run import INTERRUPTED, command, invocation
from rldsl.cli.search_view import make_search_display, show_leaderboard
from rldsl.cli.tables import echo, escape
from rldsl.cli.validate import NotValidated, validate
from rldsl.cli.write_experiment import refuse_overwriting, write_experiment
from rldsl.launch.search import SearchResult
from rldsl.launch.search_run import SearchRequest, run_search
from rldsl.launch.search_stages import next_stage
from rldsl.plan.expand import trial_of
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.report.words import count
from rldsl.search.failures import describe_failures
from rldsl.search.history import History
from rldsl.search.leaderboard import RankedTrial, best_trials
from rldsl.search.validate import ValidatedTrial, winner
from rldsl.spec.errors import SpecError


@dataclass(frozen=True)
class SearchOptions:
    """What the command line asks for."""

    fail_fast: bool = False
    retry_failed: bool = False
    validate: int | None = None
    """Best trials to train on the experiment's own seeds; None: as many as the search declares."""
    write: Path | None = None
    """The experiment file that the winner is written to."""
    force: bool = False


def search(choice: Choice, runs: Path, options: SearchOptions, *, on: str | None, detach: bool) -> int:
    """Runs the searches of the file; returns the exit code of the command."""
    searches = choice.experiments(sampled=True, on=on)
    make_plan(searches)  # refuses experiments that cannot be told apart
    if options.write is not None:
        refuse_overwriting(options.write, options.force)
        if len(searches) > 1:
            raise SpecError(f"--write takes one search, and the file has {len(searches)}: choose one with --only")
    code = 0
    for one in searches:
        ended = _Command(one, runs, choice.file, options).run()
        if ended == INTERRUPTED:
            return ended
        code = max(code, ended)
    return code


@dataclass(frozen=True)
class _Command:
    """One search of the command, with all of its stages."""

    declared: Overridden
    runs: Path
    file: Path
    options: SearchOptions

    def run(self) -> int:
        """Runs every stage; returns the exit code."""
        given = self.options
        request = SearchRequest(self.declared, self.runs, self.file, invocation(), given.fail_fast, given.retry_failed)
        while True:
            result = _run(request)
            if (code := _show(result, request)) is not None:
                return code
            following = next_stage(request, result.history)
            if following is None:
                return self._finish(request, result.history)
            request = following

    def _finish(self, request: SearchRequest, history: History) -> int:
        """Validates the best trials of the last stage and writes the winner, if that is asked for."""
        search = self.declared.experiment.search
        assert search is not None
        number = self.options.validate or search.validate_best
        best = best_trials(history, request.experiment, number or 1)
        if not best:
            echo(f"{escape(request.experiment.name)}: no trial has a value")
            return 1
        if number is None:
            return self._write_best(request, best[0])
        try:
            results = validate(self.declared, best, self.runs, self.file)
        except NotValidated as stopped:
            return stopped.code
        return self._write_validated(request, results, search.maximize)

    def _write_best(self, request: SearchRequest, best: RankedTrial) -> int:
        if self.options.write is None:
            echo("its value is the highest of many: [bold]--validate 3[/bold] trains the best on fresh seeds")
            return 0
        found = f"Trial {best.number} of {request.experiment.name}, its best: value {best.value:.1f} on "
        found += f"{count(best.seeds, 'search seed')}. It is not validated on other seeds."
        trial = trial_of(request.experiment, dict(best.point))
        write_experiment(self.options.write, self.declared.experiment, trial, found)
        return 0

    def _write_validated(self, request: SearchRequest, results: list[ValidatedTrial], maximize: bool) -> int:
        if self.options.write is None:
            return 0
        best = winner(results, maximize)
        assert best is not None
        if best.candidate.number is None:
            echo(f"{escape(str(self.options.write))} is not written: the current settings are the best")
            return 1
        found = f"Trial {best.candidate.number} of {request.experiment.name}, validated on "
        found += f"{count(len(best.scores), 'seed')} of the experiment: score {best.score:.1f}, "
        found += f"{best.difference:+.1f} against the settings before."
        write_experiment(self.options.write, self.declared.experiment, best.candidate.row.trial, found)
        return 0


def _run(request: SearchRequest) -> SearchResult:
    with make_search_display(request.experiment) as display:
        return run_search(request, display)


def _show(result: SearchResult, request: SearchRequest) -> int | None:
    """Shows how a stage has ended; returns an exit code if the search does not go on."""
    show_leaderboard(result.history, request.experiment)
    if failed := sum(trial.failed is not None for trial in result.history.trials):
        echo(f"[yellow]{count(failed, 'trial')} failed: {escape(describe_failures(result.history))}[/yellow]")
    if result.outcome == "stopped":
        echo(f"stopped; nothing is lost: [bold]{command()}[/bold] continues")
        return INTERRUPTED
    if result.outcome == "unfollowed":
        echo(f"its jobs keep running: [bold]{command()}[/bold] continues the search")
        return INTERRUPTED
    if result.problem is not None:
        echo(f"[red]stopped: {escape(result.problem)}[/red]")
        echo(f"[bold]{command()} --retry-failed[/bold] trains failed trials again")
        return 1
    return None
