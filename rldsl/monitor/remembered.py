"""Restores the view of the last time, and remembers the present one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rldsl.monitor.filter import FilterError, parse
from rldsl.monitor.settings import MAX_SELECTED, RunsView, Settings
from rldsl.monitor.themes import DARK, LIGHT

if TYPE_CHECKING:
    from rldsl.monitor.app import WatchApp


def restore(app: WatchApp, settings: Settings) -> None:
    """Takes over what is remembered; a filter that this version does not understand is left out."""
    view = settings.view(app.runs)
    if settings.theme in (DARK.name, LIGHT.name):
        app.theme = settings.theme
    app.safe_colours, app.show_events = settings.safe_colours, settings.show_events
    app.columns = list(settings.columns) or None
    app.saved_filters, app.colours = dict(settings.filters), dict(settings.colours)
    app.selected, app.pinned = set(view.selected), set(view.pinned)
    tree = app.session_tree
    tree.order, tree.reverse, tree.folded = view.order, view.reverse, dict(view.folded)
    try:
        tree.filter, app.filter_text = parse(view.filter), view.filter
    except FilterError:
        return


def remember(app: WatchApp, settings: Settings) -> None:
    """Writes the present view into the settings."""
    settings.theme = app.theme
    settings.safe_colours, settings.show_events = app.safe_colours, app.show_events
    settings.columns = list(app.columns or [])
    settings.filters, settings.colours = dict(app.saved_filters), dict(app.colours)
    tree = app.session_tree
    view = RunsView(
        filter=app.filter_text,
        order=tree.order,
        reverse=tree.reverse,
        folded=dict(tree.folded) if len(tree.folded) <= MAX_SELECTED else {},
        selected=sorted(app.selected)[:MAX_SELECTED],
        pinned=sorted(app.pinned)[:MAX_SELECTED],
    )
    settings.keep_view(app.runs, view)
