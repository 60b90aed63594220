"""The Textual app: the screens, what they show, and the global keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen

from rldsl.monitor.live_sessions import LiveSessions
from rldsl.monitor.queue import Queue
from rldsl.monitor.remembered import remember, restore
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.screens.dialogs import Help
from rldsl.monitor.screens.runs import RunsScreen
from rldsl.monitor.session_tree import ORDERS
from rldsl.monitor.settings import load_settings, save_settings
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import DARK, LIGHT
from rldsl.monitor.widgets.bars import SCREENS
from rldsl.report.words import count
from rldsl.store.errors import StoreError
from rldsl.store.files import replace_bytes

if TYPE_CHECKING:
    from rldsl.monitor.curve_work import CurveWorker

TICK_SECONDS = 5.0
"""Interval after which ages are redrawn."""
LISTS = frozenset({"runs", "search", "queue"})
"""Screens on which sessions are chosen; the others show those that were chosen last."""
DISABLED_IN_DIALOGS = frozenset(
    {
        *("show", "stop", "resume", "diff", "tensorboard", "copy_command", "help", "tags", "note", "events"),
        "next_problem",
    }
)


def _lazy_screen(name: str) -> Callable[[], Screen[Any]]:
    """Imports a screen when it is first shown, so that the first paint is fast."""

    def create() -> Screen[Any]:
        from importlib import import_module

        module = import_module(f"rldsl.monitor.screens.{name}")
        screen: Screen[Any] = getattr(module, f"{name.title()}Screen")()
        return screen

    return create


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_stem(f"{path.stem}-{number}")


class WatchApp(LiveSessions):
    """The app behind `rldsl watch`."""

    TITLE = "rldsl"
    CSS_PATH = "style.tcss"
    MODES: ClassVar[dict[str, Any]] = {name: RunsScreen if name == "runs" else _lazy_screen(name) for name in SCREENS}
    DEFAULT_MODE = "runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"show('{name}')", SCREENS[name], show=False) for number, name in enumerate(SCREENS, 1)),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("ctrl+t", "switch_theme", "Dark or light", show=False),
        Binding("exclamation_mark", "next_problem", "Next problem", show=False, key_display="!"),
        Binding("E", "events", "Events", show=False),
        Binding("B", "safe_colours", "Colour-blind palette", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self,
        runs: Path,
        *,
        now: Callable[[], float] = time.time,
        live: bool = True,
        queue: Queue | None = None,
        light: bool | None = None,
        read_only: bool = False,
        notify_url: str | None = None,
        settings: Path | None = None,
    ) -> None:
        """`settings` is the file in which the view is remembered; without one it is not."""
        super().__init__(runs, now=now, read_only=read_only, notify_url=notify_url)
        self.live = live
        self.opened: list[str] = []  # the sessions that Curves, Log and Detail show
        self.viewed = ""  # the one of them that Log and Detail show
        self.pinned: set[str] = set()  # sessions whose curves are shown beside all others
        self.colours: dict[str, int] = {}  # of curves, by label
        self.safe_colours = False
        self.filter_text = ""
        self.saved_filters: dict[str, str] = {}
        self.columns: list[str] | None = None
        self.show_events = False
        self.queue = queue or Queue(runs=runs)
        self._problem = ""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = (LIGHT if light else DARK).name
        self.settings_path, self.settings = settings, load_settings(settings)
        restore(self, self.settings)
        if light is not None:
            self.theme = (LIGHT if light else DARK).name

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _: self.refresh_screen())
        self.set_interval(TICK_SECONDS, self.tick)
        if self.live:
            self.call_after_refresh(self.follow_runs)
            self.set_interval(TICK_SECONDS, self.sample_machine)

    def on_unmount(self) -> None:
        self.stop_following()
        self.save_view()
        self.tensorboard.end()

    def save_view(self) -> None:
        """Remembers the view for the next start."""
        if self.settings_path is not None:
            remember(self, self.settings)
            save_settings(self.settings_path, self.settings)

    @cached_property
    def curve_worker(self) -> CurveWorker:
        """The reader of curves; it needs numpy, which the first screen does not wait for."""
        from rldsl.monitor.curve_work import CurveWorker

        return CurveWorker(self.runs)

    @property
    def empty_message(self) -> str:
        """Why the tree is empty."""
        if self.session_tree.filter and self.sessions:
            return "nothing matches the filter; escape clears it"
        if not self.runs.is_dir():
            return f"there is no directory {self.runs} yet; sessions appear here once they start"
        return "reading ..." if self.index.unread else f"no session in {self.runs} yet"

    def chosen(self) -> list[SessionSnapshot]:
        screen = next((one for one in reversed(self.screen_stack) if isinstance(one, WatchScreen)), None)
        return screen.chosen() if screen is not None and screen.is_mounted else []

    def in_order(self, paths: Iterable[str]) -> list[SessionSnapshot]:
        """The sessions with these paths, by experiment, trial and seed; those that were deleted are left out."""
        return sorted((self.sessions[path] for path in paths if path in self.sessions), key=self._sort_key)

    def _sort_key(self, session: SessionSnapshot) -> tuple[str, str, str, int]:
        status, varied = session.status, self.index.varied.get(session.status.experiment)
        return status.experiment, varied.label(session.trial) if varied else "", session.trial, status.seed

    def toggle(self, paths: Iterable[str]) -> None:
        """Selects these sessions, or unselects them if all are selected."""
        toggled = set(paths)
        self.selected = self.selected - toggled if toggled <= self.selected else self.selected | toggled
        self.refresh_screen()

    def pin(self, paths: Iterable[str]) -> None:
        """Pins these sessions, or unpins them if all are pinned."""
        chosen = set(paths)
        self.pinned = self.pinned - chosen if chosen <= self.pinned else self.pinned | chosen
        self.notify(f"{count(len(self.pinned), 'session')} pinned: their curves are always shown")

    def save_file(self, name: str, content: bytes) -> None:
        """Writes a file into the working directory; a browser downloads it."""
        if self.is_web:
            self.deliver_binary(BytesIO(content), save_filename=name)
            return
        path = next(path for number in range(1, 10_000) if not (path := _numbered(Path(name), number)).exists())
        try:
            replace_bytes(path, content)
        except StoreError as error:
            self.notify(str(error), severity="error", markup=False)
        else:
            self.notify(f"saved {path.resolve()}", markup=False)

    def focus_on(self, paths: Sequence[str]) -> None:
        """Makes Curves, Log and Detail show these sessions."""
        self.opened = list(paths)
        self.viewed = ""

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a dialog is open, only its own keys work."""
        return not (isinstance(self.current_screen, ModalScreen) and action in DISABLED_IN_DIALOGS)

    def action_show(self, name: str) -> None:
        """Switches to a screen. Curves, Log and Detail show what is chosen on the list that they are opened from."""
        if self.current_mode in LISTS and name not in LISTS:
            self.focus_on([session.path for session in self.chosen()] or self.opened)
        self.open_screen(name)

    def open_screen(self, name: str) -> None:
        """Switches to a screen, which shows the opened sessions."""
        self.switch_mode(name)

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_events(self) -> None:
        """Shows or hides what has happened."""
        self.show_events = not self.show_events
        self.refresh_screen()

    def action_next_problem(self) -> None:
        """Goes to the next session that failed, stalled or diverges."""
        problems = [one.path for one in self.sessions.values() if self.alert_tracker.is_problem(one)]
        problems = [one.path for one in self.in_order(problems)]
        if not problems:
            self.notify("no session has a problem")
            return
        at = problems.index(self._problem) if self._problem in problems else -1
        self._problem = problems[(at + 1) % len(problems)]
        self.open_screen("runs")
        self.call_after_refresh(self._go_to, self._problem)

    def _go_to(self, path: str) -> None:
        if isinstance(self.current_screen, RunsScreen) and path in self.sessions:
            self.current_screen.go_to(self.sessions[path])

    def action_safe_colours(self) -> None:
        """Switches between the colours of curves."""
        self.safe_colours = not self.safe_colours
        self.theme_changed_signal.publish(self.current_theme)
        self.refresh_screen()

    def action_switch_theme(self) -> None:
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The entries of the command palette."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, WatchScreen):
            yield from screen.commands()
        for name, title in SCREENS.items():
            yield SystemCommand(title, f"Show the screen {title}", partial(self.action_show, name))
        for order in ORDERS:
            yield SystemCommand(f"Sort by {order}", f"Runs by {order}", partial(self.sort_by, order))
        yield SystemCommand(
            "Colours for any colour vision", "Curves in Okabe & Ito's palette", self.action_safe_colours
        )
        yield SystemCommand("Dark or light", "Switch between the two themes", self.action_switch_theme)

    def sort_by(self, order: str) -> None:
        """Sorts the tree and shows it."""
        self.session_tree.order = order
        self.action_show("runs")
