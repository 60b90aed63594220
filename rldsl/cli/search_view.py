"""The leaderboard of a search: live on a terminal, a line for each result elsewhere, and a table at the end."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Self

from rldsl.cli.tables import NARROW, console, echo, escape
from rldsl.launch.observer import FollowedSession
from rldsl.report.search_words import settings
from rldsl.report.status import STYLES
from rldsl.report.words import amount, count, value
from rldsl.search.failures import same_reason
from rldsl.search.history import History
from rldsl.search.leaderboard import RankedTrial, leaderboard
from rldsl.search.schedule import schedule_of
from rldsl.spec.experiment import Experiment
from rldsl.store.journal import Event

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

SHOWN = 10
"""Trials of the table at the end."""
RUNNING_SHOWN = 4
"""Running sessions below the live leaderboard."""
LEFT = ("state",)
"""Columns that are aligned left."""


class SearchLines:
    """Prints a line for each result of a search. A `SearchObserver`."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._frames = schedule_of(experiment).frames
        self._reasons: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def journalled(self, event: Event, history: History) -> None:
        if event["event"] == "finished":
            row = self._row(event, history)
            at = f" at {amount(self._frames[event['rung']])} frames" if len(self._frames) > 1 else ""
            self.print(f"trial {row.number}: {_value(row)}{at}  {escape(settings(row))}")
        elif event["event"] == "failed":
            self._print_failure(event, self._row(event, history))

    def progress(self, history: History, running: Collection[FollowedSession]) -> None:
        """Lines are printed for results alone."""

    def stopping(self, requests: int) -> None:
        if requests == 1:
            self.print("[yellow]stopping: each session checkpoints first; Ctrl-C again kills them[/yellow]")

    def print(self, text: str) -> None:
        """Prints a line of markup."""
        echo(text)
        sys.stdout.flush()

    def _print_failure(self, event: Event, row: RankedTrial) -> None:
        """A reason that was printed before is not repeated."""
        first = self._reasons.setdefault(same_reason(event["reason"]), row.number)
        reason = event["reason"] if first == row.number else f"as trial {first}"
        self.print(f"trial {row.number}: [red]failed[/red], {escape(reason)}  {escape(settings(row))}")

    def _row(self, event: Event, history: History) -> RankedTrial:
        return leaderboard(History((history.trials[event["trial"]],)), self.experiment)[0]


class LiveLeaderboard(SearchLines):
    """Shows the best trials and the running sessions; failures are printed above."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        from rich.live import Live

        self._rows: list[RankedTrial] = []
        self._running: list[FollowedSession] = []
        self._live = Live(get_renderable=self._render, console=console(), refresh_per_second=2, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def journalled(self, event: Event, history: History) -> None:
        self._rows = leaderboard(history, self.experiment)
        if event["event"] == "failed":
            self._print_failure(event, self._row(event, history))

    def progress(self, history: History, running: Collection[FollowedSession]) -> None:
        self._running = list(running)
        if not self._rows and history.trials:
            self._rows = leaderboard(history, self.experiment)

    def print(self, text: str) -> None:
        self._live.console.print(text, soft_wrap=True)

    def _render(self) -> Group:
        from rich.console import Group

        room = max(3, console().height - RUNNING_SHOWN - 5)
        board = leaderboard_table(self._rows[:room], self.experiment, console().width)
        lines = [_running_line(one) for one in self._running[:RUNNING_SHOWN]]
        if (more := len(self._running) - RUNNING_SHOWN) > 0:
            lines.append(f"[dim]... {count(more, 'session')} more[/dim]")
        return Group(f"[bold]{escape(self.experiment.name)}[/bold]  {_tally(self._rows)}", board, *lines)


def make_search_display(experiment: Experiment) -> SearchLines:
    """A live leaderboard on a terminal, lines otherwise."""
    return LiveLeaderboard(experiment) if console().is_terminal else SearchLines(experiment)


def show_leaderboard(
    history: History, experiment: Experiment, shown: int | None = SHOWN, interrupted: Collection[int] = ()
) -> None:
    """Prints the best trials, all of them if `shown` is None, and how many there are."""
    rows = leaderboard(history, experiment, interrupted)
    if not rows:
        echo(f"[bold]{escape(experiment.name)}[/bold]: no trial yet")
        return
    echo(f"[bold]{escape(experiment.name)}[/bold]  {_tally(rows)}")
    console().print(leaderboard_table(rows[:shown], experiment, console().width))
    if shown is not None and len(rows) > shown:
        echo(f"[dim]... {count(len(rows) - shown, 'trial')} more; `report` shows all of them[/dim]")


def leaderboard_table(rows: Sequence[RankedTrial], experiment: Experiment, width: int) -> Table:
    """Trials in a table of at most `width` columns. What does not fit is left out: the last settings first."""
    from rich.table import Table

    narrow = width < NARROW
    gap = 1 if narrow else 2
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    columns = _fitted(_columns(rows, len(schedule_of(experiment).frames) > 1, narrow), width, gap)
    for name, cells in columns.items():
        justify: Any = "left" if name in LEFT else "right"
        shown.add_column(name, justify=justify, no_wrap=True, min_width=max(map(len, (name, *cells))))
    for index, row in enumerate(rows):
        shown.add_row(*(_styled(name, texts[index], row, index) for name, texts in columns.items()))
    return shown


def _columns(rows: Sequence[RankedTrial], rungs: bool, narrow: bool) -> dict[str, list[str]]:
    """The texts of each column, most important columns first."""
    columns = {"trial": [str(row.number) for row in rows], "value": [_value(row) for row in rows]}
    if rungs:
        columns["rung"] = [_rung(row) for row in rows]
    columns |= {"seeds": [str(row.seeds) for row in rows], "state": [row.state for row in rows]}
    for path in dict.fromkeys(path for row in rows for path in row.point):
        name = path.rpartition(".")[2] if narrow else path.removeprefix("agent.")
        name = name if name not in columns else path
        columns[name] = [_setting(row.point[path], narrow) if path in row.point else "" for row in rows]
    return columns


def _fitted(columns: dict[str, list[str]], width: int, gap: int) -> dict[str, list[str]]:
    kept, used = {}, 0
    for name, cells in columns.items():
        used += max(map(len, (name, *cells))) + gap
        if used - gap > width and name not in ("trial", "value"):
            break
        kept[name] = cells
    return kept


def _setting(setting: Any, narrow: bool) -> str:
    return f"{setting:.4g}" if narrow and isinstance(setting, float) else value(setting)


def _styled(name: str, text: str, row: RankedTrial, index: int) -> str:
    if name == "state":
        return f"[{STYLES[row.state]}]{text}[/]"
    return f"[bold]{text}[/bold]" if name == "value" and index == 0 else escape(text)


def _value(row: RankedTrial) -> str:
    return "-" if row.value is None else f"{row.value:.1f}"


def _rung(row: RankedTrial) -> str:
    """`0`, or `0>1` while it is trained on to rung 1."""
    reached = "" if row.rung is None else str(row.rung)
    return reached if row.target == row.rung else f"{reached}>{row.target}"


def _tally(rows: Sequence[RankedTrial]) -> str:
    """`12 trials: 3 done, 8 paused, 1 failed`."""
    states = [f"{number} {state}" for state in STYLES if (number := sum(row.state == state for row in rows))]
    return f"{count(len(rows), 'trial')}: {', '.join(states)}" if rows else "starting ..."


def _running_line(session: FollowedSession) -> str:
    planned, shown = session.planned, session.row.get("episode_return")
    known = "-" if shown is None else f"{shown:.1f}"
    at = " ".join(f"{path.rpartition('.')[2]}={_setting(one, True)}" for path, one in planned.row.differs.items())
    text = f"{amount(session.frame)}/{amount(planned.frames)} return {known}  seed {planned.seed}  {at}"
    return f"[blue]running[/blue] [dim]{escape(text[: max(20, console().width - 9)])}[/dim]"
