"""The Textual app: the state shared by all screens, the global keys, and the thread that reads the run directory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from rldsl.launch.local import processes
from rldsl.launch.resume import repeat_command
from rldsl.monitor.control import Request, Resumer, TensorBoard, resume_request, stop, stop_request
from rldsl.monitor.machine import read_usage
from rldsl.monitor.queue import Queue
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.screens.dialogs import Confirm, Dialog, Diff, Help
from rldsl.monitor.screens.runs import RunsScreen
from rldsl.monitor.search_index import SearchIndex
from rldsl.monitor.session_index import Changes, SessionIndex, SessionSnapshot
from rldsl.monitor.session_tree import ORDERS, SessionTree
from rldsl.monitor.themes import DARK, LIGHT
from rldsl.monitor.widgets.bars import SCREENS
from rldsl.report.difference import session_differences
from rldsl.report.words import count
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

REFRESH_SECONDS = 1.0
"""Interval between two refreshes of the index."""
REFRESH_SECONDS_READING = 0.02
"""The same while there are sessions that have not been read yet."""
TICK_SECONDS = 5.0
"""Interval after which ages are redrawn."""
DISABLED_IN_DIALOGS = frozenset({"show", "stop", "resume", "diff", "tensorboard", "copy_command", "help"})


def _lazy_screen(name: str) -> Callable[[], Screen[Any]]:
    """Imports a screen when it is first shown, so that the first paint is fast."""

    def create() -> Screen[Any]:
        from importlib import import_module

        module = import_module(f"rldsl.monitor.screens.{name}")
        screen: Screen[Any] = getattr(module, f"{name.title()}Screen")()
        return screen

    return create


class WatchApp(App[None]):
    """The app behind `rldsl watch`."""

    TITLE = "rldsl"
    CSS_PATH = "style.tcss"
    MODES: ClassVar[dict[str, Any]] = {name: RunsScreen if name == "runs" else _lazy_screen(name) for name in SCREENS}
    DEFAULT_MODE = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"show('{name}')", SCREENS[name], show=False) for number, name in enumerate(SCREENS, 1)),
        Binding("c", "stop", "Stop"),
        Binding("r", "resume", "Resume"),
        Binding("d", "diff", "Diff"),
        Binding("t", "tensorboard", "TensorBoard", show=False),
        Binding("y", "copy_command", "Copy command", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("ctrl+t", "switch_theme", "Dark or light", show=False),
        Binding("q", "quit", "Quit"),
    ]

    class IndexRefreshed(Message):
        """The reading thread found changes."""

        def __init__(self, changes: Changes) -> None:
            super().__init__()
            self.changes = changes

    def __init__(
        self,
        runs: Path,
        *,
        now: Callable[[], float] = time.time,
        live: bool = True,
        queue: Queue | None = None,
        light: bool = False,
    ) -> None:
        super().__init__()
        self.runs, self.now, self.live = runs, now, live
        self.index = SessionIndex(runs)
        self.searches = SearchIndex(runs)
        self.sessions: dict[str, SessionSnapshot] = {}
        self.selected: set[str] = set()
        self.under_cursor: list[str] = []
        self.opened: list[str] = []  # sessions that other screens show instead of those under the cursor
        self.session_tree = SessionTree()
        self.queue = queue or Queue()
        self.read_usage = read_usage
        self.resumer, self.tensorboard = Resumer(runs), TensorBoard()
        self.refresh_error = ""
        self._stop_following = threading.Event()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = (LIGHT if light else DARK).name

    def on_mount(self) -> None:
        self.set_interval(TICK_SECONDS, self._tick)
        if self.live:
            self.call_after_refresh(self.follow_runs)

    def on_unmount(self) -> None:
        self._stop_following.set()
        self.tensorboard.end()

    # Sessions

    @work(thread=True, group="watch", exit_on_error=False)
    def follow_runs(self) -> None:
        """Refreshes the index until the app is closed; errors are shown and do not end it."""
        worker = get_current_worker()
        while not worker.is_cancelled and not self._stop_following.is_set():
            changes = self.refresh_index()
            if changes or self.refresh_error:
                self.post_message(self.IndexRefreshed(changes))
            self._stop_following.wait(REFRESH_SECONDS_READING if self.index.unread else REFRESH_SECONDS)

    def refresh_index(self) -> Changes:
        """Refreshes the index once; an exception becomes `refresh_error`."""
        try:
            changes = self.index.refresh()
            changes = changes._replace(searches=self.searches.refresh())
        except Exception as error:  # one bad file must not end a monitor that is open all day
            self.refresh_error = f"cannot read {self.runs}: {error}"
            return Changes([], [])
        self.refresh_error = ""
        return changes

    def on_watch_app_index_refreshed(self, event: IndexRefreshed) -> None:
        self.apply(event.changes)

    def apply(self, changes: Changes) -> None:
        """Updates the sessions and the current screen."""
        self.sessions.update({session.path: session for session in changes.updated})
        for path in changes.removed:
            self.sessions.pop(path, None)
            self.selected.discard(path)
        if isinstance(self.current_screen, WatchScreen):
            self.current_screen.refresh_content()

    def _tick(self) -> None:
        for message in self.resumer.poll():
            self.notify(message, severity="error")
        if isinstance(self.current_screen, RunsScreen):
            self.current_screen.tick()

    @property
    def current_screen(self) -> Screen[object] | None:
        """The screen on top; None while the app is closing, when timers and messages may still arrive."""
        return self.screen_stack[-1] if self.screen_stack else None

    @property
    def empty_message(self) -> str:
        """Why the tree is empty."""
        if self.session_tree.filter and self.sessions:
            return "nothing matches the filter; escape clears it"
        if not self.runs.is_dir():
            return f"there is no directory {self.runs} yet; sessions appear here once they start"
        return "reading ..." if self.index.unread else f"no session in {self.runs} yet"

    def chosen(self) -> list[SessionSnapshot]:
        """The selected sessions; without a selection, the opened ones or those under the cursor."""
        paths: Iterable[str] = self.selected
        if not self.selected:
            paths = self.opened or self.under_cursor
        known = [self.sessions[path] for path in paths if path in self.sessions]
        return sorted(known, key=self._sort_key)

    def _sort_key(self, session: SessionSnapshot) -> tuple[str, str, str, int]:
        status, varied = session.status, self.index.varied.get(session.status.experiment)
        return status.experiment, varied.label(session.trial) if varied else "", session.trial, status.seed

    def focus_on(self, paths: Sequence[str]) -> None:
        """Makes other screens show these sessions; clears the selection."""
        self.opened = list(paths)
        self.selected = set()

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a dialog is open, only its own keys work."""
        return not (isinstance(self.current_screen, Dialog) and action in DISABLED_IN_DIALOGS)

    def action_show(self, name: str) -> None:
        """Switches to a screen."""
        if name == "runs":
            self.opened = []
        self.switch_mode(name)

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_switch_theme(self) -> None:
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def action_stop(self) -> None:
        self._with_jobs(self._ask_to_stop)

    def _with_jobs(self, then: Callable[[set[str]], None]) -> None:
        """Calls `then` with the ids of queued jobs; the queues are polled only if a chosen session was submitted."""
        if not any(session.job for session in self.chosen()):
            then(set())
            return

        def poll() -> None:
            jobs = {row.id for row in self.queue.poll().rows}
            self.call_from_thread(then, jobs)

        self.run_worker(poll, thread=True)

    def _ask_to_stop(self, jobs: set[str]) -> None:
        request = stop_request(self.chosen(), self.sessions, self.runs, jobs)
        if request is None:
            self.notify("none of the chosen sessions is running")
            return
        self._confirm(request, self._stop)

    def _stop(self, request: Request) -> None:
        sessions = count(len(request.sessions), "session")
        self._notify_result(stop(request, self.runs), f"asked {sessions} to checkpoint and stop")

    def action_resume(self) -> None:
        self._with_jobs(self._ask_to_resume)

    def _ask_to_resume(self, jobs: set[str]) -> None:
        request = resume_request(self.chosen(), processes(Local()), jobs)
        if request is None:
            self.notify("none of the chosen sessions was stopped or failed")
            return
        self._confirm(request, self._resume)

    def _resume(self, request: Request) -> None:
        self._notify_result(self.resumer.resume(request), f"resumed {count(len(request.sessions), 'session')}")

    def _confirm(self, request: Request, then: Callable[[Request], None]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                then(request)

        self.push_screen(Confirm(request.question, request.details), answered)

    def _notify_result(self, errors: list[str], success: str) -> None:
        for error in errors:
            self.notify(error, severity="warning", markup=False)
        if not errors:
            self.notify(success)

    def action_diff(self) -> None:
        """Shows what differs between the two chosen sessions."""
        chosen = self.chosen()
        if len(chosen) != 2:
            self.notify(f"select two sessions with space to compare them; {len(chosen)} are chosen")
            return
        first, second = (SessionDir(self.runs / session.path) for session in chosen)
        try:
            self.push_screen(Diff(first.id, second.id, session_differences(first, second)))
        except StoreError as error:
            self.notify(str(error), severity="error", markup=False)

    def action_copy_command(self) -> None:
        """Copies the command to the clipboard of the terminal (OSC 52, which works over SSH) and shows it."""
        chosen = self.chosen()
        if not chosen:
            return
        try:
            command = repeat_command(SessionDir(self.runs / chosen[0].path), self.runs)
        except StoreError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.copy_to_clipboard(command)
        self.notify(command, title="copied: this command trains it again", timeout=15, markup=False)

    def action_tensorboard(self) -> None:
        if chosen := self.chosen():
            self.notify("TensorBoard is starting ...")
            self.start_tensorboard(chosen)

    @work(thread=True, exclusive=True, group="tensorboard", exit_on_error=False)
    def start_tensorboard(self, chosen: Sequence[SessionSnapshot]) -> None:
        """Starts TensorBoard for these sessions and shows its URL."""
        try:
            url = self.tensorboard.start(chosen, self.runs)
        except (StoreError, OSError) as error:
            self.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        self.call_from_thread(self.copy_to_clipboard, url)
        self.call_from_thread(self.notify, f"{url} (copied); it ends with the monitor", title="TensorBoard", timeout=15)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The entries of the command palette."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, WatchScreen):
            yield from screen.commands()
        for name, title in SCREENS.items():
            yield SystemCommand(title, f"Show the screen {title}", partial(self.action_show, name))
        for order in ORDERS:
            yield SystemCommand(f"Sort by {order}", f"Runs by {order}", partial(self.sort_by, order))
        yield SystemCommand("Dark or light", "Switch between the two themes", self.action_switch_theme)

    def sort_by(self, order: str) -> None:
        """Sorts the tree and shows it."""
        self.session_tree.order = order
        self.action_show("runs")
