"""The commands that run a plan: they call `run_plan` and show how it went."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rldsl.cli.progress import make_display
from rldsl.cli.status_view import show
from rldsl.cli.tables import console, echo, escape
from rldsl.launch.run import RunRequest, RunResult, run_plan
from rldsl.launch.select import TRAIN
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import plan_states
from rldsl.store.session_state import State

MOST_LISTED = 40
INTERRUPTED = 130


def run(
    plan: Plan,
    runs: Path,
    file: Path,
    states: Collection[State] = TRAIN,
    *,
    detach: bool = False,
    cancel_stale: bool = False,
) -> int:
    """Runs the sessions of a plan that are in one of these states; returns the exit code of the command."""
    request = RunRequest(plan, runs, file, invocation(), states, detach=detach, cancel_stale=cancel_stale)
    with make_display() as display:
        result = run_plan(request, display)
    if result.outcome == "detached":
        echo(f"`status` shows their states, `stop` ends them, [bold]{command()}[/bold] reconciles")
        return int(result.problem)
    if result.outcome == "stopped":
        echo(f"stopped; nothing is lost: [bold]{command()}[/bold] resumes")
        return INTERRUPTED
    if result.outcome == "unfollowed":
        echo(
            f"the jobs keep running: `status` shows them, `stop` ends them, [bold]{command()}[/bold] follows them again"
        )
        return INTERRUPTED
    failed = _show_summary(plan, Existing(runs), display.explained)
    _show_curves(plan, runs, result)
    return int(failed or result.problem)


def invocation() -> list[str]:
    """The command that this process was started with."""
    script = sys.argv[0]
    if script.endswith(".py"):
        return ["python", *sys.argv]
    return [Path(script).name, *sys.argv[1:]]


def command() -> str:
    """The same command, quoted for a shell and escaped for markup."""
    return escape(shlex.join(invocation()))


def _show_summary(plan: Plan, existing: Existing, explained: Collection[str]) -> bool:
    """Shows the states of all sessions, without reasons that were printed already; returns whether any failed."""
    if plan.sessions <= MOST_LISTED:
        sessions = list(plan_states(plan, existing))
        show([replace(one, reason=None) if one.session in explained else one for one in sessions], as_json=False)
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
        for words in (*follow_up_commands(), ["rldsl", "watch", str(runs)]):
            echo(f"  {escape(shlex.join(words))}")


def follow_up_commands() -> list[list[str]]:
    """`enjoy` and `report` for the same sessions: with the options of this command that select sessions."""
    program, *words = invocation()
    file, given = (words[:1], words[1:]) if program == "python" else ([], words)
    if given and not given[0].startswith("-"):  # the name of the command
        given = given[1:]
    if "--plan" in given:
        return []
    if "--on" in given:
        at = given.index("--on")
        given = given[:at] + given[at + 2 :]
    given = [word for word in given if word not in ("--detach", "--cancel-stale")]
    return [[program, *file, name, *given] for name in ("enjoy", "report")]
