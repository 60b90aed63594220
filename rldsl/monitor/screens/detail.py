"""Detail: the spec, the provenance and the journal of a session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from rldsl.monitor.filter_subject import leaves
from rldsl.monitor.palette import Palette, mark
from rldsl.monitor.screens.session_view import SessionView
from rldsl.monitor.session_log import event_line, event_time
from rldsl.monitor.session_tracker import stamp
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.report.words import amount, duration, value
from rldsl.store.errors import StoreError
from rldsl.store.journal import Event, Garbage, read_journal
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

MAX_EVENTS = 200
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ale-py")


class Facts(NamedTuple):
    """What the files of a session say."""

    record: Mapping[str, Any]
    error: str
    provenance: Mapping[str, Any]
    events: list[Event | Garbage]


class DetailScreen(SessionView):
    """Shows one session. Its files are read in a thread, and only if they have changed."""

    NAME = "detail"
    AUTO_FOCUS = "#detail"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
        Binding("g", "edge(0)", "First", show=False),
        Binding("G", "edge(1)", "Last", show=False),
        Binding("escape", "app.show('runs')", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._read_state: tuple[object, ...] = ()
        self._reading = self._again = False

    def compose_body(self) -> Iterable[Widget]:
        spec = Static(id="spec", classes="section")
        rest = Container(Static(id="provenance", classes="section"), Static(id="journal", classes="section"), id="rest")
        yield VerticalScroll(Container(spec, rest, id="columns"), id="detail")

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._forget())

    def _forget(self) -> None:
        self._read_state = ()
        self.update_content()

    def update_content(self) -> None:
        chosen = self.chosen()
        if not chosen:
            self._show_nothing()
            return
        self.set_status(_summary(chosen[0], palette_of(self.app)))
        self._again = self._reading
        if not self._reading:
            self._reading = True
            self._read(chosen[0])

    @work(thread=True, group="detail", exit_on_error=False)
    def _read(self, session: SessionSnapshot) -> None:
        try:
            directory = SessionDir(self.app.runs / session.path)
            files = (directory.session, directory.journal.path, directory.path / "notes.json", directory.path)
            state = (session.path, *(stamp(str(file)) for file in files))
            if state != self._read_state:
                self.app.call_from_thread(self._show, session, _facts(directory), state)
        finally:
            self._reading = False
            if self._again:
                self.app.call_from_thread(self.update_content)

    def _show(self, session: SessionSnapshot, facts: Facts, state: tuple[object, ...]) -> None:
        palette, varied = palette_of(self.app), self.app.index.varied.get(session.status.experiment)
        self._read_state = state
        differs = varied.settings(session.trial) if varied else {}
        error = Text(facts.error, palette.style("error"))
        self.query_one("#spec", Static).update(error if facts.error else spec_text(facts.record, differs, palette))
        self.query_one("#provenance", Static).update(provenance_text(facts.provenance, session.facts, palette))
        self.query_one("#journal", Static).update(journal_text(facts.events, palette))

    def _show_nothing(self) -> None:
        self._read_state = ()
        for name in ("#spec", "#provenance", "#journal"):
            self.query_one(name, Static).update("")
        self.set_status("no session is chosen")

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
    for path, setting in leaves(record.get("trial") or {}):
        varies = path in differs
        text.append("◆ " if varies else "  ", highlight)
        text.append(f"{path:<28} ", highlight if varies else palette.dim)
        text.append(f"{_plain(setting)}\n", highlight if varies else "")
    if differs:
        text.append("\n◆ differs between the trials\n", palette.style("accent"))
    return text


def _plain(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)


def provenance_text(provenance: Mapping[str, Any], noted: Mapping[str, Any], palette: Palette) -> Text:
    """Command, code version, machine, the versions of the most important packages, and what events have noted."""
    text = _heading("Provenance", palette)
    if not provenance:
        text.append("none yet\n", palette.dim)
        return _append_noted(text, noted, palette)
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
        "device": provenance.get("device"),
        "gpus": ", ".join(hardware.get("gpus") or []) or None,
    }
    for name, field in fields.items():
        if field:
            _append_field(text, name, str(field), palette)
    return _append_noted(text, {name: one for name, one in noted.items() if name not in fields}, palette)


def _append_noted(text: Text, noted: Mapping[str, Any], palette: Palette) -> Text:
    for name, field in noted.items():
        _append_field(text, name, value(field), palette)
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
    colour = {"done": "success", "failed": "error", "stopped": "warning", "paused": "warning", "started": "primary"}
    when, name, fields = event_time(event), event["event"], event_line(event)
    text.append(f"{when} ", palette.dim)
    text.append(f"{name:<10} ", palette.style(colour.get(name, "foreground"), bold=True))
    text.append(f"{fields[len(when) + 2 + max(10, len(name)) :]}\n")


def _facts(directory: SessionDir) -> Facts:
    record, error = {}, ""
    try:
        record = directory.read_session()
    except StoreError as problem:
        error = str(problem)
    try:
        events = read_journal(directory.journal.path)
    except OSError:
        events = []
    return Facts(record, error, newest_provenance(directory.path), events)


def _heading(title: str, palette: Palette) -> Text:
    return Text().append(f"{title}\n", palette.style("primary", bold=True))


def _append_field(text: Text, name: str, field: str, palette: Palette, role: str = "foreground") -> None:
    text.append(f"  {name:<12} ", palette.dim)
    text.append(f"{field}\n", palette.style(role))


def _summary(session: SessionSnapshot, palette: Palette) -> Text:
    status = session.status
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{mark(session.state)} {session.label} ", palette.state(session.state, bold=True))
    text.append(f"{status.session} ", "bold")
    text.append(f" {session.note} ", palette.state(session.state))
    text.append(f" {amount(status.frame)}/{amount(status.frames)} frames in {duration(status.seconds)}", palette.dim)
    return text
