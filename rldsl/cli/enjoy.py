"""Which session to watch, and the process that plays it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

from rldsl.cli.status_view import of_plan
from rldsl.cli.tables import echo, escape
from rldsl.launch.worker import run_worker
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import Status
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.session_dir import SessionDir

CHECKPOINTS = ("best", "last")


def checked(checkpoint: str) -> str:
    """One of the checkpoints that there are."""
    if checkpoint not in CHECKPOINTS:
        raise SpecError(f"--checkpoint has no {checkpoint!r}; {suggestion(checkpoint, CHECKPOINTS)}")
    return checkpoint


def enjoy_session(chosen: Status, file: Path, options: Sequence[str], quiet: bool) -> int:
    """Says which session it is, and plays it in a process of its own."""
    if not quiet:
        figure = "" if chosen.mean_return is None else f", return {chosen.mean_return:.1f} in training"
        echo(f"[bold]{escape(chosen.experiment)}[/bold] seed {chosen.seed} ({chosen.session}){figure}")
    return run_worker("rldsl.play.enjoy", [chosen.directory, "--file", str(file), *options])


def choose(plan: Plan, existing: Existing, seed: int | None) -> Status:
    """The started session with the best return; of several environments' returns none is the best."""
    started = [one for one in of_plan(plan, existing) if one.state != "new"]
    found = [one for one in started if seed is None or one.seed == seed]
    if not found:
        raise SpecError(_nothing(plan, existing, seed, started))
    saved = [one for one in found if SessionDir(Path(one.directory)).checkpoints.is_dir()]
    if not saved:
        raise SpecError(f"{found[0].session} has no checkpoint yet: the first comes after two minutes, or at its end")
    if len({_environment(one) for one in saved}) > 1:
        names = ", ".join(dict.fromkeys(one.experiment for one in saved))
        raise SpecError(f"choose with --only: {names} are in different environments")
    return max(saved, key=lambda one: -inf if one.mean_return is None else one.mean_return)


def _nothing(plan: Plan, existing: Existing, seed: int | None, started: list[Status]) -> str:
    if started:
        seeds = ", ".join(str(one) for one in sorted({one.seed for one in started}))
        return f"no session with seed {seed} has been started; started seeds: {seeds}"
    names = ", ".join(part.name for part in plan.parts)
    return f"nothing of {names} has been trained in {existing.runs} with these settings; the command train does it"


def _environment(one: Status) -> str:
    return Path(one.directory).parents[1].name
