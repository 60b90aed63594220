"""What is under the cursor of Runs, beside the tree on wide terminals: its curve, its state, its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical

from rldsl.monitor.chart_groups import groups_of
from rldsl.monitor.chart_lines import View, distinct
from rldsl.monitor.curve_work import Job, Result
from rldsl.monitor.palette import Palette, mark
from rldsl.monitor.session_tree import TreeRow
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import age
from rldsl.monitor.widgets.chart import Chart, ChartData
from rldsl.monitor.widgets.painted import TextLines
from rldsl.report.words import amount, count, duration, value

if TYPE_CHECKING:
    from rldsl.monitor.app import WatchApp

METRIC = "episode_return"
MAX_LINES = 8
MAX_SESSIONS = 64


class SidePanel(Vertical):
    """Follows the cursor; nothing is read while it is hidden."""

    app: WatchApp

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._row: TreeRow | None = None
        self._job: Job | None = None
        self._busy = False

    def compose(self) -> ComposeResult:
        yield Chart(id="side-chart")
        yield TextLines(id="side-text")

    def show_row(self, row: TreeRow | None) -> None:
        """Shows a session or a group."""
        self._row = row
        if not self.display or not self.is_mounted or row is None or not self.size.width:
            return
        palette = palette_of(self.app)
        self.query_one("#side-text", TextLines).show(self._text(row, palette))
        groups = groups_of(self.app, row.sessions[:MAX_SESSIONS])[:MAX_LINES]
        self._job = Job(distinct(groups, len(palette.line_colours)), lambda names: [METRIC], View())
        self._start()

    def _start(self) -> None:
        """Begins with the last row that was asked for, once the thread is free. Called on the event loop."""
        if self._job is not None and not self._busy:
            self._busy = True
            job, self._job = self._job, None
            self._work(job)

    @work(thread=True, group="side", exit_on_error=False)
    def _work(self, job: Job) -> None:
        try:
            self.app.call_from_thread(self._show, self.app.curve_worker.run(job))
        finally:
            self.app.call_from_thread(self._end)

    def _end(self) -> None:
        self._busy = False
        self._start()

    def _show(self, result: Result) -> None:
        target = self._row.summary.target if self._row else None
        lines = result.lines.get(METRIC, ())
        data = ChartData(lines, target, False, METRIC, result.markers, empty=f"no {METRIC} yet")
        self.query_one("#side-chart", Chart).show(data, None, None)

    def _text(self, row: TreeRow, palette: Palette) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{row.label}\n", palette.style("primary", bold=True))
        if row.group:
            text.append(f"{count(len(row.sessions), 'session')}: ", palette.dim)
            text.append("  ".join(f"{mark(state)}{number} {state}" for state, number in row.summary.states.items()))
            return text
        session, now = row.sessions[0], self.app.now()
        status = session.status
        text.append(f"{mark(session.state)} {session.label}  ", palette.state(session.state, bold=True))
        text.append(f"{session.note}\n", palette.state(session.state))
        left = "" if session.left is None else f", {duration(session.left)} left"
        changed = "" if session.changed is None else f", {age(now - session.changed)} ago"
        text.append(
            f"{amount(status.frame)} of {amount(status.frames)} frames in {duration(status.seconds)}{left}{changed}\n"
        )
        varied = self.app.index.varied.get(status.experiment)
        settings = varied.settings(session.trial) if varied else {}
        shown = {"session": status.session, "backend": session.backend, "device": status.device, **settings}
        for name, one in [*shown.items(), *session.row.items()]:
            if one not in (None, ""):
                text.append(f"{name:<22} ", palette.dim)
                text.append(f"{value(one)}\n")
        return text
