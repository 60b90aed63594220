"""Preparing sessions before they are launched: the weights that they start from, and what shorter ones have trained."""

from __future__ import annotations

from collections.abc import Sequence

from rldsl.launch.extend import extend_sessions
from rldsl.launch.initial import fetch_initial
from rldsl.plan.after import Stage
from rldsl.plan.existing import Existing


def prepare_stages(stages: Sequence[Stage], existing: Existing, *, extend: bool = True) -> list[Stage]:
    """The stages, ready to be launched; weights that others are still to train are fetched when those are done."""
    for stage in stages:
        if not stage.needs:
            fetch_initial(stage.sessions, existing.runs)
    if not extend:
        return list(stages)
    return [stage._replace(sessions=extend_sessions(stage.sessions, existing)) for stage in stages]
