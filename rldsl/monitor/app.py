"""The app: what all screens share (facts, selection, filter), the keys that work everywhere, the thread that looks."""

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
from rldsl.monitor.control import Board, Request, Resumer, resume_request, stop, stop_request
from rldsl.monitor.facts import Changes, Index, Seen
from rldsl.monitor.machine import read_usage
from rldsl.monitor.outline import ORDERS, Outline
from rldsl.monitor.queue import Queue
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.screens.dialogs import Confirm, Dialog, Diff, Help
from rldsl.monitor.screens.runs import RunsScreen
from rldsl.monitor.themes import DARK, LIGHT
from rldsl.monitor.widgets.bars import SCREENS
from rldsl.report.difference import session_differences
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

LOOK_EVERY = 1.0
"""Seconds between two looks at the run directory."""
LOOK_AGAIN = 0.02
"""Seconds between two looks while there are sessions that have not been read."""
TICK = 5.0
"""Seconds after which ages are drawn anew."""
BELOW_DIALOGS = frozenset({"show", "stop", "resume", "diff", "tensorboard", "copy_command", "help"})


def _later(name: str) -> Callable[[], Screen[Any]]:
    """A screen that is imported when it is first shown."""

    def make() -> Screen[Any]:
        from importlib import import_module

        module = import_module(f"rldsl.monitor.screens.{name}")
        made: Screen[Any] = getattr(module, f"{name.title()}Screen")()
        return made

    return make


class WatchApp(App[None]):
    """`rldsl watch`."""

    TITLE = "rldsl"
    CSS_PATH = "style.tcss"
    MODES: ClassVar[dict[str, Any]] = {name: RunsScreen if name == "runs" else _later(name) for name in SCREENS}
    DEFAULT_MODE = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"show('{name}')", SCREENS[name], show=False) for number, name in enumerate(SCREENS, 1)),
        Binding("c", "stop", "Cancel"),
        Binding("r", "resume", "Resume"),
        Binding("d", "diff", "Diff"),
        Binding("t", "tensorboard", "TensorBoard", show=False),
        Binding("y", "copy_command", "Copy command", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("ctrl+t", "switch_theme", "Dark or light", show=False),
        Binding("q", "quit", "Quit"),
    ]

    class Facts(Message):
        """The thread that looks has found something."""

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
        self.index = Index(runs)
        self.seen: dict[str, Seen] = {}
        self.selected: set[str] = set()
        self.under_cursor: list[str] = []
        self.opened: list[str] = []  # sessions that other screens show, in place of those under the cursor
        self.outline = Outline()
        self.queue = queue or Queue()
        self.read_usage = read_usage
        self.resumer, self.board = Resumer(runs), Board()
        self.trouble = ""
        self._leaving = threading.Event()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = (LIGHT if light else DARK).name

    def on_mount(self) -> None:
        self.set_interval(TICK, self._tick)
        if self.live:
            self.call_after_refresh(self.watch)

    def on_unmount(self) -> None:
        self._leaving.set()
        self.board.end()

    # Facts

    @work(thread=True, group="watch", exit_on_error=False)
    def watch(self) -> None:
        """Looks at the run directory until the app ends; whatever it meets is said, and it goes on."""
        worker = get_current_worker()
        while not worker.is_cancelled and not self._leaving.is_set():
            changes = self.look()
            if changes or self.trouble:
                self.post_message(self.Facts(changes))
            self._leaving.wait(LOOK_AGAIN if self.index.unread else LOOK_EVERY)

    def look(self) -> Changes:
        """One look; an error is a sentence."""
        try:
            changes = self.index.look()
        except Exception as error:  # a monitor that is open all day must not end because of one bad file
            self.trouble = f"cannot look at {self.runs}: {error}"
            return Changes([], [])
        self.trouble = ""
        return changes

    def on_watch_app_facts(self, event: Facts) -> None:
        self.take(event.changes)

    def take(self, changes: Changes) -> None:
        """Takes in what a look found, and shows it."""
        self.seen.update({one.path: one for one in changes.seen})
        for path in changes.gone:
            self.seen.pop(path, None)
            self.selected.discard(path)
        if isinstance(self.shown, WatchScreen):
            self.shown.refresh_facts()

    def _tick(self) -> None:
        for sentence in self.resumer.poll():
            self.notify(sentence, severity="error")
        if isinstance(self.shown, RunsScreen):
            self.shown.tick()

    @property
    def shown(self) -> Screen[object] | None:
        """The screen on top; none while the program ends, when a timer or a message may still come."""
        return self.screen_stack[-1] if self.screen_stack else None

    @property
    def emptiness(self) -> str:
        """What an empty tree means."""
        if self.outline.filter and self.seen:
            return "nothing matches the filter; escape takes it away"
        if not self.runs.is_dir():
            return f"there is no directory {self.runs} yet; it is shown once a session starts"
        return "reading ..." if self.index.unread else f"no session in {self.runs} yet"

    def chosen(self) -> list[Seen]:
        """The selected sessions; without a selection those that were opened, or else those under the cursor."""
        paths: Iterable[str] = self.selected
        if not self.selected:
            paths = self.opened or self.under_cursor
        known = [self.seen[path] for path in paths if path in self.seen]
        return sorted(known, key=self._by_name)

    def _by_name(self, one: Seen) -> tuple[str, str, str, int]:
        family = self.index.families.get(one.status.experiment)
        return one.status.experiment, family.label(one.trial) if family else "", one.trial, one.status.seed

    def focus_on(self, paths: Sequence[str]) -> None:
        """Other screens show these sessions, whatever is selected."""
        self.opened = list(paths)
        self.selected = set()

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Over a question, a diff or the help, only their own keys count."""
        return not (isinstance(self.shown, Dialog) and action in BELOW_DIALOGS)

    def action_show(self, name: str) -> None:
        """Another screen."""
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
        """Goes on with the jobs that the queues have; they are asked, aside, only if a chosen session was submitted."""
        if not any(one.job for one in self.chosen()):
            then(set())
            return

        def ask() -> None:
            jobs = {row.id for row in self.queue.ask().rows}
            self.call_from_thread(then, jobs)

        self.run_worker(ask, thread=True)

    def _ask_to_stop(self, jobs: set[str]) -> None:
        request = stop_request(self.chosen(), self.seen, self.runs, jobs)
        if request is None:
            self.notify("none of the chosen sessions is running")
            return
        self._confirm(request, self._stop)

    def _stop(self, request: Request) -> None:
        self._told(stop(request, self.runs), f"asked {len(request.sessions)} to checkpoint and stop")

    def action_resume(self) -> None:
        self._with_jobs(self._ask_to_resume)

    def _ask_to_resume(self, jobs: set[str]) -> None:
        request = resume_request(self.chosen(), processes(Local()), jobs)
        if request is None:
            self.notify("none of the chosen sessions was stopped or failed")
            return
        self._confirm(request, self._resume)

    def _resume(self, request: Request) -> None:
        self._told(self.resumer.resume(request), f"resumed {len(request.sessions)}")

    def _confirm(self, request: Request, then: Callable[[Request], None]) -> None:
        def answered(yes: bool | None) -> None:
            if yes:
                then(request)

        self.push_screen(Confirm(request.question, request.what), answered)

    def _told(self, refused: list[str], done: str) -> None:
        for sentence in refused:
            self.notify(sentence, severity="warning", markup=False)
        if not refused:
            self.notify(done)

    def action_diff(self) -> None:
        """What differs between the two selected sessions."""
        chosen = self.chosen()
        if len(chosen) != 2:
            self.notify(f"select two sessions with space to see what differs; {len(chosen)} are chosen")
            return
        first, second = (SessionDir(self.runs / one.path) for one in chosen)
        try:
            self.push_screen(Diff(first.id, second.id, session_differences(first, second)))
        except StoreError as error:
            self.notify(str(error), severity="error", markup=False)

    def action_copy_command(self) -> None:
        """To the clipboard of the terminal, also over SSH where the terminal allows it; and to the screen."""
        chosen = self.chosen()
        if not chosen:
            return
        try:
            command = repeat_command(SessionDir(self.runs / chosen[0].path), self.runs)
        except StoreError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.copy_to_clipboard(command)
        self.notify(command, title="copied: this trains it again", timeout=15, markup=False)

    def action_tensorboard(self) -> None:
        if chosen := self.chosen():
            self.notify("TensorBoard is starting ...")
            self.start_board(chosen)

    @work(thread=True, exclusive=True, group="board", exit_on_error=False)
    def start_board(self, chosen: Sequence[Seen]) -> None:
        """Starts TensorBoard for these sessions and says where it is."""
        try:
            address = self.board.start(chosen, self.runs)
        except (StoreError, OSError) as error:
            self.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        self.call_from_thread(self.copy_to_clipboard, address)
        self.call_from_thread(
            self.notify, f"{address} (copied); it ends with the monitor", title="TensorBoard", timeout=15
        )

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the command palette offers beside Textual's own."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, WatchScreen):
            yield from screen.commands()
        for name, title in SCREENS.items():
            yield SystemCommand(title, f"Show the screen {title}", partial(self.action_show, name))
        for order in ORDERS:
            yield SystemCommand(f"Sort by {order}", f"Runs by {order}", partial(self.sort_by, order))
        yield SystemCommand("Dark or light", "Switch between the two themes", self.action_switch_theme)

    def sort_by(self, order: str) -> None:
        """Another order of the tree."""
        self.outline.order = order
        self.action_show("runs")
