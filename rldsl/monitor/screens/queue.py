"""Queue: the jobs in SLURM and dstack, with the sessions that they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable, Static

from rldsl.monitor.queue import POLL_SECONDS, QueueRow, with_sessions
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.report.words import count

NO_QUEUE = "no queue: neither squeue nor the URL of a dstack server (DSTACK_SERVER_URL) was found"
ROLES = {"running": "primary", "pending": "warning", "failed": "error", "terminated": "error", "done": "success"}


class QueueScreen(WatchScreen):
    """Polls the queues while the screen is shown."""

    NAME = "queue"
    AUTO_FOCUS = "DataTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor(1)", "Down", show=False),
        Binding("k", "cursor(-1)", "Up", show=False),
        Binding("escape", "app.show('runs')", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[QueueRow] = []

    def compose_body(self) -> Iterable[Widget]:
        yield Static(id="notes")
        yield DataTable(id="jobs", cursor_type="row", zebra_stripes=True)

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns("backend", "job", "state", "time", "reason", "name", "sessions")
        self.set_interval(POLL_SECONDS / 15, self._poll_if_shown)

    def update_content(self) -> None:
        self._show()
        self._poll_if_shown()

    def _poll_if_shown(self) -> None:
        if self.is_current and self.app.queue.sources and self.app.queue.due:
            self.poll()

    @work(thread=True, group="queue", exit_on_error=False)
    def poll(self) -> None:
        """Polls in a thread: a queue can be slow."""
        self.app.queue.poll()
        self.app.call_from_thread(self._show)

    def _show(self) -> None:
        report, palette = self.app.queue.report, palette_of(self.app)
        notes = [*report.notes] if self.app.queue.sources else [NO_QUEUE]
        if self.app.queue.sources and report.polled_at is None:
            notes.append("polling ...")
        self.query_one("#notes", Static).update(Text("\n".join(notes), palette.style("warning")))
        self.rows = with_sessions(report.rows, self.app.sessions)
        table = self.query_one(DataTable)
        cursor = table.cursor_row
        table.clear()
        for row in self.rows:
            state = Text(row.state, palette.style(ROLES.get(row.state, "foreground")))
            sessions = ", ".join(row.sessions[:3]) + (" ..." if len(row.sessions) > 3 else "")
            table.add_row(row.backend, row.id, state, row.time, row.reason, row.name, sessions)
        table.move_cursor(row=cursor)
        sources = ", ".join(self.app.queue.sources) or "none"
        jobs = count(len(self.rows), "job")
        self.set_status(f"{jobs}; queues: {sources}, polled at most every {POLL_SECONDS:.0f} seconds")

    def action_cursor(self, step: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + step)

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        ids = set(self.rows[event.cursor_row].sessions)
        paths = [path for path, session in self.app.sessions.items() if session.status.session in ids]
        if paths:
            self.app.focus_on(paths)
            self.app.action_show("detail")
