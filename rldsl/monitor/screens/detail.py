"""Detail: the spec, the provenance and the journal of a session."""

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

from rldsl.monitor.palette import MARKS, Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.session_index import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.report.words import amount, duration, value
from rldsl.store.errors import StoreError
from rldsl.store.journal import Event, Garbage, read_journal
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

MAX_EVENTS = 200
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ale-py")


class DetailScreen(WatchScreen):
    """Shows the first of the chosen sessions."""

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
        rest = Container(Static(id="provenance", classes="section"), Static(id="journal", classes="section"), id="rest")
        yield VerticalScroll(Container(spec, rest, id="columns"), id="detail")

    def update_content(self) -> None:
        chosen = self.app.chosen()
        if not chosen:
            self._show_nothing()
            return
        session, palette = chosen[0], palette_of(self.app)
        directory = SessionDir(self.app.runs / session.path)
        self.query_one("#spec", Static).update(self._spec(session, directory, palette))
        self.query_one("#provenance", Static).update(provenance_text(newest_provenance(directory.path), palette))
        self.query_one("#journal", Static).update(journal_text(_events(directory), palette))
        self.set_status(_summary(session, palette))

    def _show_nothing(self) -> None:
        for name in ("#spec", "#provenance", "#journal"):
            self.query_one(name, Static).update("")
        self.set_status("no session is chosen")

    def _spec(self, session: SessionSnapshot, directory: SessionDir, palette: Palette) -> Text:
        try:
            record = directory.read_session()
        except StoreError as error:
            return Text(str(error), palette.style("error"))
        varied = self.app.index.varied.get(session.status.experiment)
        return spec_text(record, varied.settings(session.trial) if varied else {}, palette)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#detail").scroll_relative(y=lines, animate=False)

    def action_edge(self, last: int) -> None:
        box = self.query_one("#detail")
        (box.scroll_end if last else box.scroll_home)(animate=False)


def spec_text(record: Mapping[str, Any], differs: Mapping[str, Any], palette: Palette) -> Text:
    """The settings, one per line; those in which the trials of the experiment differ are highlighted."""
    text = _heading("Spec", palette)
    for name in ("experiment", "env", "agent", "seed", "frames"):
        _append_field(text, name, str(record.get(name)), palette)
    for override in record.get("overrides") or []:
        change = f"{value(override.get('now'))} instead of {value(override.get('was'))}"
        _append_field(text, str(override.get("path")), change, palette, "accent")
    text.append("\n")
    highlight = palette.style("accent", bold=True)
    for path, setting in _leaves(record.get("trial") or {}):
        varies = path in differs
        text.append("◆ " if varies else "  ", highlight)
        text.append(f"{path:<28} ", highlight if varies else palette.dim)
        text.append(f"{_plain(setting)}\n", highlight if varies else "")
    if differs:
        text.append("\n◆ differs between the trials\n", palette.style("accent"))
    return text


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in data.items():
        path = f"{prefix}{name}"
        if isinstance(item, dict):
            yield from _leaves(item, f"{path}.")
        else:
            yield path, item


def _plain(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)


def provenance_text(provenance: Mapping[str, Any], palette: Palette) -> Text:
    """Command, code version, machine and the versions of the most important packages."""
    text = _heading("Provenance", palette)
    if not provenance:
        return text.append("none yet\n", palette.dim)
    code, hardware = provenance.get("code") or {}, provenance.get("hardware") or {}
    packages = provenance.get("packages") or {}
    fields = {
        "command": " ".join(map(str, provenance.get("command") or [])),
        "directory": provenance.get("cwd"),
        "commit": code.get("sha"),
        "changed": "yes, see tree.diff" if code.get("dirty") else "no",
        "rldsl": code.get("rldsl"),
        "python": provenance.get("python"),
        "packages": ", ".join(f"{name} {packages[name]}" for name in PACKAGES if name in packages),
        "host": provenance.get("host"),
        "cpu": f"{hardware.get('cpu')}, {hardware.get('cores')} cores",
        "gpus": ", ".join(hardware.get("gpus") or []) or None,
    }
    for name, field in fields.items():
        if field:
            _append_field(text, name, str(field), palette)
    return text


def journal_text(events: list[Event | Garbage], palette: Palette) -> Text:
    """The events, one per line; lines that are not events are shown as they are."""
    text = _heading("Journal", palette)
    if len(events) > MAX_EVENTS:
        text.append(f"... {len(events) - MAX_EVENTS:,} earlier events\n", palette.dim)
    for event in events[-MAX_EVENTS:]:
        if isinstance(event, Garbage):
            text.append(f"unreadable: {event.text[:80]!r}\n", palette.style("error"))
        else:
            _append_event(text, event, palette)
    return text


def _append_event(text: Text, event: Event, palette: Palette) -> None:
    timestamp = event.get("time")
    known = isinstance(timestamp, int | float)
    text.append(f"{time.strftime('%m-%d %H:%M:%S', time.localtime(timestamp)) if known else '?'} ", palette.dim)
    colour = {"done": "success", "failed": "error", "stopped": "warning", "paused": "warning", "started": "primary"}
    text.append(f"{event['event']:<10} ", palette.style(colour.get(event["event"], "foreground"), bold=True))
    fields = {name: field for name, field in event.items() if name not in ("time", "event")}
    text.append(" ".join(f"{name}={value(field)}" for name, field in fields.items()) + "\n")


def _events(directory: SessionDir) -> list[Event | Garbage]:
    try:
        return read_journal(directory.journal.path)
    except OSError:
        return []


def _heading(title: str, palette: Palette) -> Text:
    return Text().append(f"{title}\n", palette.style("primary", bold=True))


def _append_field(text: Text, name: str, field: str, palette: Palette, role: str = "foreground") -> None:
    text.append(f"  {name:<12} ", palette.dim)
    text.append(f"{field}\n", palette.style(role))


def _summary(session: SessionSnapshot, palette: Palette) -> Text:
    status = session.status
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{MARKS[status.state]} {status.state} ", palette.state(status.state, bold=True))
    text.append(f"{status.session} ", "bold")
    text.append(f" {status.note} ", palette.state(status.state))
    text.append(f" {amount(status.frame)}/{amount(status.frames)} frames in {duration(status.seconds)}", palette.dim)
    return text
