"""Running a plan on this machine and waiting for it: starts what is missing, shows it, stops cleanly on Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from statistics import fmean
from types import FrameType

from rldsl.cli.progress import Display, Followed, make_display
from rldsl.cli.status_view import of_plan, show
from rldsl.cli.tables import echo, escape
from rldsl.launch.jobs import Job, JobMaker
from rldsl.launch.local import LocalRun
from rldsl.launch.submit import packs_of
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan, Row
from rldsl.report.words import count, value
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Local
from rldsl.store.errors import writing
from rldsl.store.session_dir import SessionDir

POLL_SECONDS = 0.2
LOG_LINES = 8
MOST_LISTED = 40
INTERRUPTED = 130


def run_plan(
    plan: Plan,
    runs: Path,
    file: Path,
    launcher: Local,
    states: Sequence[str] = ("new", "resume"),
) -> int:
    """Runs the sessions of a plan that are in one of these states; 0 when nothing failed or crashed."""
    wanted = list(pending(plan, Existing(runs), states))
    if not wanted:
        return summary(plan, Existing(runs))
    with stopping() as stop:
        run = _Foreground(wanted, freeze(plan, runs), runs, file, launcher)
        run.wait(stop)
    if stop.asked:
        echo(f"stopped; nothing is lost: [bold]{command()}[/bold] goes on")
        return INTERRUPTED
    return max(summary(plan, Existing(runs)), run.run.crashed)


def refuse_adaptive(plan: Plan) -> None:
    for part in plan.parts:
        if part.search in ("asha", "nevergrad"):
            raise SpecError(f"{part.name}: {part.search} can be planned but not run yet; .random(...) can")


def _refuse_unimplemented(row: Row) -> None:
    for part in (row.trial.env, row.trial.agent):
        if not part.implementation:
            raise SpecError(f"{row.experiment}: {type(part).__name__} can be planned but not run yet")


def pending(plan: Plan, existing: Existing, states: Sequence[str], here: bool = True) -> Iterator[PlannedSession]:
    """The sessions to run, each once, however many experiments have it; says what is left alone and why.

    Where they do not run `here`, it does not matter what this machine lacks.
    """
    seen: Counter[str] = Counter()
    ids: set[str] = set()
    for row in plan.rows():
        _refuse_unimplemented(row)
        for one in existing.planned(row):
            if one.id in ids:
                continue
            ids.add(one.id)
            seen[one.report.state] += 1
            if one.report.state in states:
                if here and one.lacks:
                    raise SpecError(one.lacks)
                yield one
    for state, words in (("running", "running already"), ("failed", "failed before: the command resume tries again")):
        if seen[state] and state not in states:
            echo(f"[yellow]{count(seen[state], 'session')} {words}[/yellow]")


def freeze(plan: Plan, runs: Path) -> Path:
    """Jobs get a plan file, never a live object."""
    folder = runs / ".plans"
    with writing(runs):
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
    plan.save(path)
    return path


class Stop:
    """How often somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = 0

    def note(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1


@contextmanager
def stopping() -> Iterator[Stop]:
    """Inside, Ctrl-C and its like are noted instead of raised."""
    stop = Stop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop.note) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Foreground:
    """Jobs and the sessions that they run, until all have ended."""

    def __init__(self, pending: list[PlannedSession], plan: Path, runs: Path, file: Path, launcher: Local) -> None:
        self.planned_sessions = {one.id: one for one in pending}
        maker = JobMaker(plan.resolve(), runs.resolve(), file.resolve(), invocation())
        self.run = LocalRun([maker.job(pack) for pack in packs_of(pending, launcher)], launcher)
        self.runs = runs
        self.followed: dict[str, Followed] = {}

    def wait(self, stop: Stop) -> None:
        """Returns when all have ended; if it cannot go on, no job is left running behind its back."""
        try:
            with make_display() as display:
                self._follow(stop, display)
        except BaseException:
            self.run.stop()
            raise

    def _follow(self, stop: Stop, display: Display) -> None:
        told = 0
        while self.run.active:
            if stop.asked > told:
                told = stop.asked
                self._stop(told)
            self._poll(display)
            time.sleep(POLL_SECONDS)
        self._poll(display)

    def _stop(self, asked: int) -> None:
        if asked == 1:
            echo("[yellow]stopping: each session checkpoints first; once more ends them at once[/yellow]")
            self.run.stop()
        else:
            self.run.kill()

    def _poll(self, display: Display) -> None:
        ended = self.run.poll()
        for id in (id for job in self.run.running for id in job.sessions):
            if id not in self.followed:
                planned = self.planned_sessions[id]
                self.followed[id] = Followed.start(planned, SessionDir(self.runs / planned.directory))
        for one in self.followed.values():
            one.read()
        for job in ended:
            for id in job.sessions:
                self._ended(self.followed.pop(id), job, display)
        display.update(self.followed.values())

    def _ended(self, one: Followed, job: Job, display: Display) -> None:
        one.read()
        report = one.directory.report()
        display.ended(one, report.state)
        code = self.run.exit_codes[job]
        if report.state not in ("done", "resume"):
            explain(report.reason or f"its process ended with {code}", last_lines(one.directory.log))


def explain(reason: str, lines: Sequence[str]) -> None:
    """Why a session ended as it should not, and the last that its log says."""
    echo(f"  [red]{escape(reason)}[/red]")
    for line in lines:
        echo(f"  [dim]{escape(line)}[/dim]")


def last_lines(log: Path) -> list[str]:
    try:
        return log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    except OSError:
        return []


def invocation() -> list[str]:
    """The command that this process was started with."""
    script = sys.argv[0]
    if script.endswith(".py"):
        return ["python", *sys.argv]
    return [Path(script).name, *sys.argv[1:]]


def command() -> str:
    """The same, as it is shown."""
    return " ".join(escape(word) for word in invocation())


def summary(plan: Plan, existing: Existing) -> int:
    """Shows how all of it stands; 1 if anything failed."""
    if plan.sessions <= MOST_LISTED:
        statuses = list(of_plan(plan, existing))
        show(statuses, as_json=False)
        return 1 if any(one.state == "failed" for one in statuses) else 0
    states = Counter(one.report.state for row in plan.rows() for one in existing.planned(row))
    echo(", ".join(f"{number:,} {state}" for state, number in states.items()))
    return 1 if states["failed"] else 0


def show_best(plan: Plan, runs: Path) -> None:
    """The best trial of each search, by the mean over its seeds."""
    scores: dict[str, list[float]] = {}
    for one in of_plan(plan, Existing(runs)):
        if one.state == "done" and one.mean_return is not None:
            scores.setdefault(one.session.rpartition("-s")[0], []).append(one.mean_return)
    best: dict[str, tuple[float, Row]] = {}
    for row in plan.rows():
        mean = fmean(scores.get(row.id, [-inf]))
        if mean > best.get(row.experiment, (-inf, row))[0]:
            best[row.experiment] = (mean, row)
    for name, (mean, row) in best.items():
        at = escape(", ".join(f"{path} = {value(one)}" for path, one in row.differs.items()))
        echo(f"[bold]{name}[/bold]: best return {mean:.1f} at {at}; train it on fresh seeds before you report it")
