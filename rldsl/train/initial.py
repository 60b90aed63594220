"""Starting a session from the weights of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rldsl.agents.base import Learner
from rldsl.spec.errors import SpecError
from rldsl.spec.init_from import InitFrom
from rldsl.store.checkpoint import load_checkpoint
from rldsl.store.initial import initial_session


def load_initial_weights(agent: Learner, member: int, init: InitFrom, seed: int, runs: Path) -> dict[str, Any]:
    """Loads weights and normalisation statistics into a member; returns what to journal about it."""
    source = initial_session(runs, init, seed)
    saved = load_checkpoint(source.checkpoints, tag="best" if init.checkpoint == "best" else None)
    if saved is None:
        raise SpecError(f"init_from: {init.source} has no checkpoint called {init.checkpoint}")
    try:
        agent.initialize(member, saved.state["agent"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise SpecError(
            f"init_from: the weights of {init.source} do not fit this agent and network: {reason}"
        ) from error
    return {"source": init.source, "checkpoint": init.checkpoint, "source_frame": saved.frame}
