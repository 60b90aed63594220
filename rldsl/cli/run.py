"""The commands that run a plan: they call `run_plan` and show how it went."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

import typer

from rldsl.cli import INTERRUPTED
from rldsl.cli.notify import Notifier, without_url
from rldsl.cli.progress import make_display
from rldsl.cli.status_view import settings_of, show
from rldsl.cli.tables import console, echo, escape
from rldsl.launch.follow import stop_signals
from rldsl.launch.other_code import Decision, SessionsOfOtherCode
from rldsl.launch.run import RunRequest, RunResult, run_plan
from rldsl.launch.select import TRAIN
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import plan_states
from rldsl.spec.errors import EXIT_CODE, SpecError
from rldsl.store.code_version import CodeVersions
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import State

MOST_LISTED = 40


def run(
    plan: Plan,
    runs: Path,
    file: Path | None,
    states: Collection[State] = TRAIN,
    *,
    detach: bool = False,
    cancel_stale: bool = False,
    other_code: Decision = "refuse",
    debug: bool = False,
    notify: str | None = None,
) -> int:
    """Runs the sessions of a plan that are in one of these states; returns the exit code of the command."""
    notifier = Notifier(notify)
    request = RunRequest(plan, runs, file, invocation(), states, detach=detach, cancel_stale=cancel_stale)
    request = replace(request, other_code=decided(request, other_code))
    if debug:
        from rldsl.cli.debug import debug as debug_here

        return debug_here(request)
    with make_display() as display:
        display.on_ended = notifier.ended
        result = run_plan(request, display)
    if result.outcome == "detached":
        echo(f"`status` shows their states, `stop` ends them, [bold]{command()}[/bold] reconciles")
        return int(result.problem)
    if result.outcome == "stopped":
        echo(f"stopped, all progress is saved; to continue: [bold]{command()}[/bold]")
        return INTERRUPTED
    if result.outcome == "unfollowed":
        echo(
            f"the jobs keep running: `status` shows them, `stop` ends them, [bold]{command()}[/bold] follows them again"
        )
        return INTERRUPTED
    with stop_signals():  # Ctrl-C does not lose the table
        failed = _show_summary(plan, Existing(runs, CodeVersions(file)), display.explained)
    _show_curves(plan, runs, result)
    if result.started:
        notifier.finished(list(plan_states(plan, Existing(runs))))
    if notifier.problem is not None:
        echo(f"[yellow]{escape(notifier.problem)}[/yellow]")
    return int(failed or result.problem)


def decision(redo: bool, continue_: bool, *, named: bool = False) -> Decision:
    """What `--redo` and `--continue` say. Sessions that are `named` are redone whatever code trained them."""
    if redo and continue_:
        raise SpecError("--redo and --continue exclude each other")
    if redo:
        return "redo all" if named else "redo"
    return "continue" if continue_ else "refuse"


def decided(request: RunRequest, other_code: Decision) -> Decision:
    """The decision; on a terminal, the user is asked if it is missing."""
    if other_code != "refuse" or not (sys.stdin.isatty() and console().is_terminal):
        return other_code
    try:
        request.settle()
    except SessionsOfOtherCode as found:
        echo(f"[yellow]{escape(found.finding)}[/yellow]")
        echo(f"[dim]`rldsl diff {found.sessions[0].id} {escape(str(request.file))}` shows what changed[/dim]")
        answer = _answer("it" if len(found.sessions) == 1 else "them")
        if answer == "quit":
            echo("nothing was started")
            raise typer.Exit(EXIT_CODE) from None
        return answer
    return other_code


def _answer(them: str) -> Literal["continue", "redo", "quit"]:
    """What the user types, asked until it is one of the three words or its first letter."""
    words: tuple[Literal["continue", "redo", "quit"], ...] = ("continue", "redo", "quit")
    while True:
        given = typer.prompt(f"[c]ontinue {them} with the present code, [r]edo {them}, or [q]uit", default="q")
        for word in words:
            if given.strip() and word.startswith(given.strip().lower()):
                return word


def invocation() -> list[str]:
    """The command that this process was started with."""
    script, words = sys.argv[0], without_url(sys.argv[1:])
    return ["python", script, *words] if script.endswith(".py") else [Path(script).name, *words]


def command() -> str:
    """The same command, quoted for a shell and escaped for markup."""
    return escape(shlex.join(invocation()))


def _show_summary(plan: Plan, existing: Existing, explained: Collection[str]) -> bool:
    """Shows the states of all sessions, without reasons that were printed already; returns whether any failed."""
    if plan.sessions <= MOST_LISTED:
        sessions = list(plan_states(plan, existing))
        shown = [replace(one, reason=None) if one.session in explained else one for one in sessions]
        show(shown, as_json=False, settings=settings_of(plan))
        return any(one.state == "failed" for one in sessions)
    states = Counter(planned.state for planned in existing.sessions(plan))
    echo(", ".join(f"{number:,} {state}" for state, number in states.items()))
    return states["failed"] > 0


def _show_curves(plan: Plan, runs: Path, result: RunResult) -> None:
    """On a terminal: a learning curve for each experiment, and commands to try next."""
    if not console().is_terminal or not result.started:
        return
    from rldsl.cli.curve import show_curves

    if show_curves(plan, Existing(runs)):
        echo("\n[dim]next:[/dim]")
        for words in (*follow_up_commands(_committed(plan, runs)), ["rldsl", "watch", str(runs)]):
            echo(f"  {escape(shlex.join(words))}")


def _committed(plan: Plan, runs: Path) -> bool:
    """Whether the code of the finished sessions was committed; of many sessions, of the first ones."""
    from rldsl.report.run_result import was_committed

    done = (one for one in Existing(runs).sessions(plan) if one.state == "done")
    return all(was_committed(SessionDir(runs / one.directory)) for one in islice(done, MOST_LISTED))


def follow_up_commands(committed: bool) -> list[list[str]]:
    """`enjoy` and `report` for the same sessions: with the options of this command that select sessions.

    A report rejects code that was not `committed`; `plot` does not.
    """
    program, *words = invocation()
    file, given = (words[:1], words[1:]) if program == "python" else ([], words)
    if given and not given[0].startswith("-"):  # the name of the command
        given = given[1:]
    if "--plan" in given:
        return []
    if "--on" in given:
        at = given.index("--on")
        given = given[:at] + given[at + 2 :]
    given = [word for word in given if word not in ("--detach", "--cancel-stale", "--redo", "--continue")]
    return [[program, *file, name, *given] for name in ("enjoy", "report" if committed else "plot")]
