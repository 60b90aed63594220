"""Queue: what SLURM and dstack say, joined with our sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable, Static

from rldsl.monitor.queue import EVERY, joined
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.report.words import count

NONE = "no queue here: neither squeue nor the address of a dstack server (DSTACK_SERVER_URL) was found"
ROLES = {"running": "primary", "pending": "warning", "failed": "error", "terminated": "error", "done": "success"}


class QueueScreen(WatchScreen):
    """Asks while it is looked at; the queue itself is asked every half a minute at most."""

    NAME = "queue"
    AUTO_FOCUS = "DataTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor(1)", "Down", show=False),
        Binding("k", "cursor(-1)", "Up", show=False),
        Binding("escape", "app.show('runs')", "Back"),
    ]

    def compose_body(self) -> Iterable[Widget]:
        yield Static(id="notes")
        yield DataTable(id="jobs", cursor_type="row", zebra_stripes=True)

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns("place", "job", "state", "time", "reason", "name", "our sessions")
        self.set_interval(EVERY / 15, self._ask_if_looked_at)

    def update_facts(self) -> None:
        self._show()
        self._ask_if_looked_at()

    def _ask_if_looked_at(self) -> None:
        if self.is_current and self.app.queue.sources and self.app.queue.due:
            self.ask()

    @work(thread=True, group="queue", exit_on_error=False)
    def ask(self) -> None:
        """Asks in a thread: a queue may take its time."""
        self.app.queue.ask()
        self.app.call_from_thread(self._show)

    def _show(self) -> None:
        answer, palette = self.app.queue.answer, palette_of(self.app)
        notes = [*answer.notes] if self.app.queue.sources else [NONE]
        if self.app.queue.sources and answer.asked is None:
            notes.append("asking ...")
        self.query_one("#notes", Static).update(Text("\n".join(notes), palette.style("warning")))
        self.rows = joined(answer.rows, self.app.seen)
        table = self.query_one(DataTable)
        row = table.cursor_row
        table.clear()
        for one in self.rows:
            state = Text(one.state, palette.style(ROLES.get(one.state, "foreground")))
            ours = ", ".join(one.sessions[:3]) + (" ..." if len(one.sessions) > 3 else "")
            table.add_row(one.place, one.id, state, one.time, one.reason, one.name, ours)
        table.move_cursor(row=row)
        asked = ", ".join(self.app.queue.sources) or "nobody"
        self.say(f"{count(len(self.rows), 'job')}; asked: {asked}, every {EVERY:.0f} seconds at most")

    def action_cursor(self, by: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + by)

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        ours = set(self.rows[event.cursor_row].sessions)
        paths = [path for path, one in self.app.seen.items() if one.status.session in ours]
        if paths:
            self.app.focus_on(paths)
            self.app.action_show("detail")
