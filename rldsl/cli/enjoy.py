"""The command `enjoy`: chooses a session and plays its policy in a separate process."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

from rldsl.cli.tables import echo, escape
from rldsl.launch.worker import run_worker
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import plan_states
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

CHECKPOINTS = ("best", "last")


def checked(checkpoint: str) -> str:
    """The name of a checkpoint, if there is such a one."""
    if checkpoint not in CHECKPOINTS:
        raise SpecError(f"--checkpoint has no {checkpoint!r}; {suggestion(checkpoint, CHECKPOINTS)}")
    return checkpoint


def enjoy_session(chosen: SessionState, file: Path, options: Sequence[str], quiet: bool) -> int:
    """Prints which session was chosen, and plays it in a separate process."""
    if not quiet:
        known = chosen.episode_return is not None
        training = f", return {chosen.episode_return:.1f} in training" if known else ""
        echo(f"[bold]{escape(chosen.experiment)}[/bold] seed {chosen.seed} ({chosen.session}){training}")
    return run_worker("rldsl.play.enjoy", [chosen.directory, "--file", str(file), *options])


def choose(plan: Plan, existing: Existing, seed: int | None) -> SessionState:
    """The started session with the best return; returns of different environments are not compared."""
    started = [one for one in plan_states(plan, existing) if one.state != "new"]
    candidates = [one for one in started if seed is None or one.seed == seed]
    if not candidates:
        raise SpecError(_nothing_started(plan, existing, seed, started))
    saved = [one for one in candidates if SessionDir(Path(one.directory)).checkpoints.is_dir()]
    if not saved:
        raise SpecError(
            f"{candidates[0].session} has no checkpoint yet: the first comes after two minutes, or at its end"
        )
    if len({_environment(one) for one in saved}) > 1:
        names = ", ".join(dict.fromkeys(one.experiment for one in saved))
        raise SpecError(f"choose with --only: {names} are in different environments")
    return max(saved, key=lambda one: -inf if one.episode_return is None else one.episode_return)


def _nothing_started(plan: Plan, existing: Existing, seed: int | None, started: list[SessionState]) -> str:
    if started:
        seeds = ", ".join(str(one) for one in sorted({one.seed for one in started}))
        return f"no session with seed {seed} has been started; started seeds: {seeds}"
    names = ", ".join(part.name for part in plan.parts)
    return f"nothing of {names} has been trained in {existing.runs} with these settings; the command train does it"


def _environment(one: SessionState) -> str:
    return Path(one.directory).parents[1].name
