"""The stages of a search, one after the other: each is a search of its own, with its own directory."""

from __future__ import annotations

from dataclasses import replace

from rldsl.launch.search_run import SearchRequest
from rldsl.plan.overrides import Overridden
from rldsl.search.history import History
from rldsl.search.stages import narrow_experiment


def next_stage(request: SearchRequest, history: History) -> SearchRequest | None:
    """The search that follows a finished one; None if it was the last."""
    search = request.experiment.search
    if search is None or search.narrow is None:
        return None
    narrow = narrow_experiment(request.experiment, history)
    return replace(request, search=Overridden(narrow, request.search.overrides))
