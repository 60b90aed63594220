"""Detail: what a session is, where it comes from, what happened to it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from rldsl.monitor.facts import Seen
from rldsl.monitor.palette import MARKS, Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.report.words import amount, duration, value
from rldsl.store.errors import StoreError
from rldsl.store.journal import Event, Garbage, read_journal
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

MOST_EVENTS = 200
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ale-py")


class DetailScreen(WatchScreen):
    """The first chosen session."""

    NAME = "detail"
    AUTO_FOCUS = "#detail"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
        Binding("g", "edge(0)", "First", show=False),
        Binding("G", "edge(1)", "Last", show=False),
        Binding("escape", "app.show('runs')", "Back"),
    ]

    def compose_body(self) -> Iterable[Widget]:
        spec = Static(id="spec", classes="section")
        rest = Container(Static(id="origin", classes="section"), Static(id="journal", classes="section"), id="rest")
        yield VerticalScroll(Container(spec, rest, id="columns"), id="detail")

    def update_facts(self) -> None:
        chosen = self.app.chosen()
        if not chosen:
            self._show_nothing()
            return
        seen, palette = chosen[0], palette_of(self.app)
        directory = SessionDir(self.app.runs / seen.path)
        self.query_one("#spec", Static).update(self._spec(seen, directory, palette))
        self.query_one("#origin", Static).update(origin_text(newest_provenance(directory.path), palette))
        self.query_one("#journal", Static).update(journal_text(_events(directory), palette))
        self.say(_summary(seen, palette))

    def _show_nothing(self) -> None:
        for name in ("#spec", "#origin", "#journal"):
            self.query_one(name, Static).update("")
        self.say("no session is chosen")

    def _spec(self, seen: Seen, directory: SessionDir, palette: Palette) -> Text:
        try:
            record = directory.read_session()
        except StoreError as error:
            return Text(str(error), palette.style("error"))
        family = self.app.index.families.get(seen.status.experiment)
        return spec_text(record, family.settings(seen.trial) if family else {}, palette)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#detail").scroll_relative(y=lines, animate=False)

    def action_edge(self, last: int) -> None:
        box = self.query_one("#detail")
        (box.scroll_end if last else box.scroll_home)(animate=False)


def spec_text(record: Mapping[str, Any], differs: Mapping[str, Any], palette: Palette) -> Text:
    """The settings, one a line; those in which the trials of the experiment differ stand out."""
    text = _heading("Spec", palette)
    facts = {"experiment": record.get("experiment"), "env": record.get("env"), "agent": record.get("agent")}
    for name, one in {**facts, "seed": record.get("seed"), "frames": record.get("frames")}.items():
        _fact(text, name, str(one), palette)
    for one in record.get("overrides") or []:
        _fact(
            text, str(one.get("path")), f"{value(one.get('now'))} instead of {value(one.get('was'))}", palette, "accent"
        )
    text.append("\n")
    for path, one in _leaves(record.get("trial") or {}):
        apart = path in differs
        text.append("◆ " if apart else "  ", palette.style("accent", bold=True))
        text.append(f"{path:<28} ", palette.style("accent", bold=True) if apart else palette.dim)
        text.append(f"{_plain(one)}\n", palette.style("accent", bold=True) if apart else "")
    if differs:
        text.append("\n◆ differs from its siblings\n", palette.style("accent"))
    return text


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, one in data.items():
        path = f"{prefix}{name}"
        if isinstance(one, dict):
            yield from _leaves(one, f"{path}.")
        else:
            yield path, one


def _plain(one: Any) -> str:
    return one if isinstance(one, str) else json.dumps(one)


def origin_text(facts: Mapping[str, Any], palette: Palette) -> Text:
    """Command, code, machine and the packages that matter."""
    text = _heading("Provenance", palette)
    if not facts:
        return text.append("none yet\n", palette.dim)
    code, hardware = facts.get("code") or {}, facts.get("hardware") or {}
    packages = facts.get("packages") or {}
    shown = {
        "command": " ".join(map(str, facts.get("command") or [])),
        "directory": facts.get("cwd"),
        "commit": code.get("sha"),
        "changed": "yes, see tree.diff" if code.get("dirty") else "no",
        "rldsl": code.get("rldsl"),
        "python": facts.get("python"),
        "packages": ", ".join(f"{name} {packages[name]}" for name in PACKAGES if name in packages),
        "host": facts.get("host"),
        "cpu": f"{hardware.get('cpu')}, {hardware.get('cores')} cores",
        "gpus": ", ".join(hardware.get("gpus") or []) or None,
    }
    for name, one in shown.items():
        if one:
            _fact(text, name, str(one), palette)
    return text


def journal_text(events: list[Event | Garbage], palette: Palette) -> Text:
    """What happened, an event a line; what is no event is shown as what it is."""
    text = _heading("Journal", palette)
    if len(events) > MOST_EVENTS:
        text.append(f"... {len(events) - MOST_EVENTS:,} events before\n", palette.dim)
    for event in events[-MOST_EVENTS:]:
        if isinstance(event, Garbage):
            text.append(f"unreadable: {event.text[:80]!r}\n", palette.style("error"))
        else:
            _event(text, event, palette)
    return text


def _event(text: Text, event: Event, palette: Palette) -> None:
    at = event.get("time")
    moment = time.strftime("%m-%d %H:%M:%S", time.localtime(at)) if isinstance(at, int | float) else "?"
    text.append(f"{moment} ", palette.dim)
    colour = {"done": "success", "failed": "error", "stopped": "warning", "started": "primary"}
    text.append(f"{event['event']:<10} ", palette.style(colour.get(event["event"], "foreground"), bold=True))
    facts = {name: one for name, one in event.items() if name not in ("time", "event")}
    text.append(" ".join(f"{name}={value(one)}" for name, one in facts.items()) + "\n")


def _events(directory: SessionDir) -> list[Event | Garbage]:
    try:
        return read_journal(directory.journal.path)
    except OSError:
        return []


def _heading(title: str, palette: Palette) -> Text:
    return Text().append(f"{title}\n", palette.style("primary", bold=True))


def _fact(text: Text, name: str, fact: str, palette: Palette, role: str = "foreground") -> None:
    text.append(f"  {name:<12} ", palette.dim)
    text.append(f"{fact}\n", palette.style(role))


def _summary(seen: Seen, palette: Palette) -> Text:
    status = seen.status
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{MARKS[status.state]} {status.state} ", palette.state(status.state, bold=True))
    text.append(f"{status.session} ", "bold")
    text.append(f" {status.note} ", palette.state(status.state))
    text.append(f" {amount(status.frame)}/{amount(status.frames)} frames in {duration(status.seconds)}", palette.dim)
    return text
