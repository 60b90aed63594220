"""The command `search`: runs the searches of a file one after the other and shows how they go."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rldsl.cli import INTERRUPTED
from rldsl.cli.options import Choice
from rldsl.cli.run import command, invocation
from rldsl.cli.search_view import make_search_display, show_leaderboard
from rldsl.cli.tables import echo, escape
from rldsl.cli.validate import NotValidated, validate
from rldsl.cli.write_experiment import refuse_overwriting, write_experiment
from rldsl.launch.follow import stop_signals
from rldsl.launch.queues import Queues
from rldsl.launch.search import SearchResult
from rldsl.launch.search_detach import detach_search, find_driver, follow_driver
from rldsl.launch.search_run import SearchRequest, run_search
from rldsl.launch.search_stages import next_stage
from rldsl.launch.search_state import interrupted_trials, search_dir, started_plan
from rldsl.plan.existing import Existing
from rldsl.plan.expand import trial_of
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.report.words import count
from rldsl.search.failures import describe_failures
from rldsl.search.history import History
from rldsl.search.leaderboard import RankedTrial, best_trials
from rldsl.search.validate import ValidatedTrial, winner
from rldsl.spec.errors import SpecError
from rldsl.store.code_version import CodeVersions


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
    if choice.session or choice.plan_file or choice.file.suffix != ".py":
        raise SpecError("a search needs its experiment file: a plan and sessions have no axes")
    searches = choice.experiments(sampled=True, on=on)
    make_plan(searches)  # refuses experiments that cannot be told apart
    if options.write is not None:
        refuse_overwriting(options.write, options.force)
        if len(searches) > 1:
            raise SpecError(f"--write takes one search, and the file has {len(searches)}: choose one with --only")
    if detach:
        return _detach(searches, runs, choice.file, options)
    return _run_all(searches, runs, choice.file, options)


def resume_searches(searches: Sequence[Overridden], runs: Path, file: Path, *, moved: bool, detach: bool) -> int:
    """Continues those searches that were started: where they ran before, unless they are `moved` to a launcher."""
    started = []
    for one in searches:
        if (directory := search_dir(one, runs)).exists():
            launcher = one.experiment.launcher if moved else directory.experiment().launcher
            started.append(replace(one, experiment=one.experiment.model_copy(update={"launcher": launcher})))
    return (_detach if detach else _run_all)(started, runs, file, SearchOptions())


def _detach(searches: Sequence[Overridden], runs: Path, file: Path, options: SearchOptions) -> int:
    """Starts a driver for each search and returns."""
    if options.validate is not None or options.write is not None:
        raise SpecError("--detach returns at once: use --validate and --write without it, when the search has finished")
    for one in searches:
        _tell_other_code(one, runs, file)
        request = SearchRequest(one, runs, file, invocation(), options.fail_fast, options.retry_failed, note=_note)
        record = detach_search(request)
        kind = "process" if record.backend == "local" else f"{record.backend} job"
        echo(f"{escape(one.experiment.name)}: {kind} {record.job_id} drives the search")
    if searches:
        echo("`status` shows its state, `stop` ends it, `resume` continues it")
    return 0


def _note(sentence: str) -> None:
    echo(f"[yellow]{escape(sentence)}[/yellow]")


def _tell_other_code(one: Overridden, runs: Path, file: Path) -> None:
    """Says how many trials continue with other code than they were started with: a search is not redone."""
    existing = Existing(runs, CodeVersions(file))
    sessions = existing.sessions(started_plan([one], runs)) if existing.directories else ()
    other = [session for session in sessions if session.on_disk.other_code and session.state != "done"]
    if other:
        found = count(len(other), "unfinished session")
        _note(f"{one.experiment.name}: {found} of other code will continue with the present code")


def _run_all(searches: Sequence[Overridden], runs: Path, file: Path, options: SearchOptions) -> int:
    code = 0
    for one in searches:
        _tell_other_code(one, runs, file)
        ended = _Command(one, runs, file, options).run()
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
        options = (given.fail_fast, given.retry_failed)
        request = SearchRequest(self.declared, self.runs, self.file, invocation(), *options, note=_note)
        while True:
            result = self._run(request)
            if (code := _show(result, request)) is not None:
                return code
            following = next_stage(request, result.history)
            if following is None:
                return self._finish(request, result.history)
            request = following

    def _run(self, request: SearchRequest) -> SearchResult:
        """Runs a stage, or follows the detached driver that does."""
        queues = Queues(self.runs)
        driver = find_driver(request.directory, queues, search_dir(self.declared, self.runs))
        queues.refuse_errors()
        with make_search_display(request.experiment) as display:
            if not driver.live or driver.description is None:
                return run_search(request, display)
            echo(f"{escape(f'followed: {driver.description}')}; Ctrl-C leaves it running")
            with stop_signals() as stop:
                return follow_driver(driver, request, display, stop)

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
            echo(
                f"trial {best.number} is the best of many, so its value is too high: "
                "[bold]--validate 3[/bold] trains the best on fresh seeds"
            )
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


def _show(result: SearchResult, request: SearchRequest) -> int | None:
    """Shows how a stage has ended; returns an exit code if the search does not go on."""
    interrupted: Collection[int] = ()
    if result.outcome in ("stopped", "failed"):
        interrupted = interrupted_trials(request.directory, result.history, Queues(request.runs))
    show_leaderboard(result.history, request.experiment, interrupted=interrupted)
    if failed := sum(trial.failed is not None for trial in result.history.trials):
        echo(f"[yellow]{count(failed, 'trial')} failed: {escape(describe_failures(result.history))}[/yellow]")
    if result.outcome == "stopped":
        echo(f"stopped, all progress is saved; to continue: [bold]{command()}[/bold]")
        return INTERRUPTED
    if result.outcome == "unfollowed":
        echo(f"jobs keep running: `status` shows them, `stop` ends them, [bold]{command()}[/bold] continues the search")
        return INTERRUPTED
    if result.problem is not None:
        echo(f"[red]stopped: {escape(result.problem)}[/red]")
        if any(trial.failed is not None and trial.started is not None for trial in result.history.trials):
            echo(f"[bold]{command()} --retry-failed[/bold] trains failed trials again")
        return 1
    return None
