"""The command `enjoy`: chooses a session and plays its policy in a separate process."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

from rldsl.cli.selected import override_notes
from rldsl.cli.tables import echo, escape
from rldsl.launch.worker import run_worker
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import plan_states
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

CHECKPOINTS = ("best", "last")


def checked(checkpoint: str, folder: Path | None = None) -> str:
    """The name of a checkpoint, if there is such a one; `folder` may have some that a hook has named."""
    if checkpoint not in CHECKPOINTS and not (folder is not None and (folder / checkpoint).is_dir()):
        raise SpecError(f"--checkpoint has no {checkpoint!r}; {suggestion(checkpoint, CHECKPOINTS)}")
    return checkpoint


def enjoy_session(chosen: SessionState, file: Path | None, options: Sequence[str], quiet: bool) -> int:
    """Prints which session was chosen, and plays it in a separate process."""
    if not quiet:
        known = chosen.episode_return is not None
        training = f", return {chosen.episode_return:.1f} in training" if known else ""
        echo(f"[bold]{escape(chosen.experiment)}[/bold] seed {chosen.seed} ({chosen.session}){training}")
    return run_worker("rldsl.play.enjoy", [chosen.directory, *(["--file", str(file)] if file else []), *options])


def enjoy_downloaded(address: str, options: Sequence[str]) -> int:
    """Plays an agent of the Hugging Face Hub, which is downloaded once."""
    from rldsl.hub.agent import download_agent

    return run_worker("rldsl.play.enjoy", [str(download_agent(address).path), *options])


def choose(plans: Sequence[Plan], existing: Existing, seeds: Sequence[int], *, quiet: bool) -> SessionState:
    """The started session with the best return; returns of different environments are not compared.

    It is one of the first plan that has any; later ones also have sessions with overrides.
    """
    started: list[SessionState] = []
    candidates: list[SessionState] = []
    for plan in plans:
        started = [one for one in plan_states(plan, existing) if one.state != "new"] or started
        if candidates := [one for one in started if not seeds or one.seed in seeds]:
            for note in () if quiet else override_notes(plan, [one.session for one in candidates]):
                echo(f"[dim]trained with {escape(note)}[/dim]")
            break
    if not candidates:
        raise SpecError(_nothing_started(plans[0], existing, seeds, started))
    saved = [one for one in candidates if SessionDir(Path(one.directory)).checkpoints.is_dir()]
    if not saved:
        raise SpecError(
            f"{candidates[0].session} has no checkpoint yet: the first comes after two minutes, or at its end"
        )
    if len({_environment(one) for one in saved}) > 1:
        names = ", ".join(dict.fromkeys(one.experiment for one in saved))
        raise SpecError(f"choose with --only: {names} are in different environments")
    return max(saved, key=lambda one: -inf if one.episode_return is None else one.episode_return)


def _nothing_started(plan: Plan, existing: Existing, seeds: Sequence[int], started: list[SessionState]) -> str:
    if started:
        known = ", ".join(str(one) for one in sorted({one.seed for one in started}))
        wanted = ", ".join(map(str, seeds))
        return f"no session with seed {wanted} has been started; started seeds: {known}"
    names = ", ".join(part.name for part in plan.parts)
    return f"nothing of {names} has been trained in {existing.runs} with these settings; the command train does it"


def _environment(one: SessionState) -> str:
    return Path(one.directory).parents[1].name
