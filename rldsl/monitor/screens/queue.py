"""Queue: the jobs in SLURM and dstack, with the sessions that they run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable, Static

from rldsl.monitor.palette import Palette
from rldsl.monitor.queue import POLL_SECONDS, QueueRow, with_sessions
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.keyed_table import KeyedTable
from rldsl.report.words import count

NO_QUEUE = "no queue: neither squeue nor the URL of a dstack server (DSTACK_SERVER_URL) was found"
COLUMNS = ("backend", "job", "state", "time", "reason", "name", "sessions")
ROLES = {"running": "primary", "pending": "warning", "failed": "error", "terminated": "error", "done": "success"}


class QueueScreen(WatchScreen):
    """Polls the queues while the screen is shown."""

    NAME = "queue"
    AUTO_FOCUS = "DataTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.show('runs')", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[QueueRow] = []

    def compose_body(self) -> Iterable[Widget]:
        yield Static(id="notes")
        yield KeyedTable(id="jobs")

    def on_mount(self) -> None:
        self.set_interval(POLL_SECONDS / 15, self._poll_if_shown)

    @property
    def table(self) -> KeyedTable:
        return self.query_one(KeyedTable)

    def chosen(self) -> list[SessionSnapshot]:
        """The selected sessions of the jobs of this screen, otherwise those of the job under the cursor."""
        shown = self._paths({id for row in self.rows for id in row.sessions})
        key = self.table.current_key
        under_cursor = {id for row in self.rows if _key(row) == key for id in row.sessions}
        return self.app.in_order(self.app.selected & shown or self._paths(under_cursor))

    def _paths(self, ids: set[str]) -> set[str]:
        return {path for path, session in self.app.sessions.items() if session.status.session in ids} if ids else set()

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
        priced = any(row.cost for row in self.rows)
        columns = (*COLUMNS, "cost") if priced else COLUMNS
        self.table.show(columns, [(_key(row), self._cells(row, palette)[: len(columns)]) for row in self.rows])
        sources = ", ".join(self.app.queue.sources) or "none"
        jobs = count(len(self.rows), "job")
        polled = f"{jobs}; queues: {sources}, polled at most every {POLL_SECONDS:.0f} seconds"
        self.set_status("; ".join([*report.spent, polled]))

    def _cells(self, row: QueueRow, palette: Palette) -> list[Text]:
        paths = self._paths(set(row.sessions))
        selected = "◆ " if paths and paths <= self.app.selected else ""
        state = Text(row.state, palette.style(ROLES.get(row.state, "foreground")))
        sessions = ", ".join(row.sessions[:3]) + (" ..." if len(row.sessions) > 3 else "")
        texts = (row.time, row.reason, row.name, sessions, row.cost)
        return [Text(f"{selected}{row.backend}"), Text(row.id), state, *map(Text, texts)]

    @on(KeyedTable.Toggled)
    def _toggle(self, event: KeyedTable.Toggled) -> None:
        self.app.toggle(self._paths({id for row in self.rows if _key(row) == event.key for id in row.sessions}))

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        if paths := self._paths(set(self.rows[event.cursor_row].sessions)):
            self.app.focus_on(sorted(paths))
            self.app.open_screen("detail")


def _key(row: QueueRow) -> str:
    return f"{row.backend} {row.id}"
