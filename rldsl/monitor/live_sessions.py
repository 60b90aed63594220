"""The sessions of a run directory, followed by threads: what has changed reaches the screens as messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from textual import work
from textual.message import Message
from textual.screen import Screen
from textual.worker import get_current_worker

from rldsl.launch.stop import holder
from rldsl.monitor.alerts import AlertTracker
from rldsl.monitor.machine import MachineHistory, read_usage
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.search_index import SearchIndex
from rldsl.monitor.session_actions import with_action
from rldsl.monitor.session_index import Changes, SessionIndex
from rldsl.monitor.session_notes import SessionNotes
from rldsl.monitor.session_tree import SessionTree
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.trends import Trends
from rldsl.store.session_dir import SessionDir

REFRESH_SECONDS = 1.0
"""Interval between two refreshes of the index."""
REFRESH_SECONDS_READING = 0.02
"""The same while there are sessions that have not been read yet."""


class LiveSessions(SessionNotes):
    """The state of all sessions, searches and this machine, as of the last refresh."""

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
        read_only: bool = False,
        notify_url: str | None = None,
    ) -> None:
        super().__init__(runs, read_only=read_only, notify_url=notify_url)
        self.now = now
        self.index = SessionIndex(runs, now=now)
        self.searches = SearchIndex(runs)
        self.sessions = {}
        self.selected: set[str] = set()
        self.session_tree = SessionTree(now=now)
        self.alert_tracker = AlertTracker(now)
        self.trends = Trends(runs)
        self.machine = MachineHistory()
        self.read_usage = read_usage
        self.refresh_error = ""
        self._actions: dict[str, tuple[str, SessionSnapshot]] = {}  # under way, with the session when it began
        self._measuring = self._sampling = False
        self._stop_following = threading.Event()

    @property
    def current_screen(self) -> Screen[object] | None:
        """The screen on top; None while the app is closing, when timers and messages may still arrive."""
        return self.screen_stack[-1] if self.screen_stack else None

    @work(thread=True, group="watch", exit_on_error=False)
    def follow_runs(self) -> None:
        """Refreshes the index until the app is closed; errors are shown and do not end it."""
        worker = get_current_worker()
        while not worker.is_cancelled and not self._stop_following.is_set():
            changes = self.refresh_index()
            if changes or self.refresh_error:
                for part in changes.parts():
                    self.post_message(self.IndexRefreshed(part))
            self._stop_following.wait(REFRESH_SECONDS_READING if self.index.unread else REFRESH_SECONDS)

    def stop_following(self) -> None:
        self._stop_following.set()

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

    def on_live_sessions_index_refreshed(self, event: IndexRefreshed) -> None:
        self.apply(event.changes)

    def apply(self, changes: Changes) -> None:
        """Updates the sessions and the current screen, and announces what the user should know."""
        alerts = []
        for session in changes.updated:
            before = self.sessions.get(session.path)
            if session.live and before is None:
                self.trends.get(session.path, session.changed)  # its best return so far
            alerts += self.alert_tracker.observe(session, before)
            self._update(session)
        if changes.searches:
            alerts += self.alert_tracker.observe_searches(self.searches.snapshots)
        self.announce(alerts)
        for path in changes.removed:
            if path in self.sessions:
                self.session_tree.changed(self.sessions.pop(path).status.experiment)
            self.selected.discard(path)
            self._actions.pop(path, None)
            self.alert_tracker.forget(path)
        self.refresh_screen()
        self.update_trends()

    def _update(self, session: SessionSnapshot) -> None:
        action, before = self._actions.get(session.path, ("", session))
        session = with_action(session, action, before)
        if not session.action:
            self._actions.pop(session.path, None)
        old = self.sessions.get(session.path)
        self.sessions[session.path] = session
        self.session_tree.changed(session.status.experiment)
        if old is not None and old.status.experiment != session.status.experiment:
            self.session_tree.changed(old.status.experiment)

    def show_actions(self, paths: Iterable[str], action: str) -> None:
        for path in paths:
            if session := self.sessions.get(path):
                self._actions[path] = action, session
                self._update(replace(session, action=""))
        self.refresh_screen()

    def update_trends(self) -> None:
        """Takes the samples for sparklines that are wanted, in a thread."""
        if self.trends.wanted and not self._sampling:
            self._sampling = True
            self._sample()

    @work(thread=True, group="trends", exit_on_error=False)
    def _sample(self) -> None:
        try:
            asked = list(self.trends.wanted)
            if self.trends.update():
                self.call_from_thread(self._sampled, asked)
        finally:
            self._sampling = False

    def _sampled(self, paths: Iterable[str]) -> None:
        for path in paths:
            if (session := self.sessions.get(path)) and session.live:
                self.alert_tracker.learn(path, self.trends.get(path, session.changed))
        if isinstance(self.current_screen, WatchScreen):
            self.current_screen.tick()

    def sample_machine(self) -> None:
        """Measures this machine, in a thread: `nvidia-smi` can be slow."""
        if not self._measuring:
            self._measuring = True
            self._measure([session.path for session in self.sessions.values() if session.live])

    @work(thread=True, group="machine", exit_on_error=False)
    def _measure(self, live: Sequence[str]) -> None:
        try:
            found = {path: holder(SessionDir(self.runs / path)) for path in live}
            holders = {path: process.pid for path, process in found.items() if process and process.here}
            self.machine.sample(lambda: self.read_usage(self.runs), holders)
        finally:
            self._measuring = False
        if self.current_mode == "machine":
            self.call_from_thread(self.refresh_screen)

    def reread(self, paths: Sequence[str]) -> None:
        self.index.ask_for(paths)

    def refresh_screen(self) -> None:
        """Shows the current sessions on the current screen."""
        if isinstance(self.current_screen, WatchScreen):
            self.current_screen.refresh_content()

    def tick(self) -> None:
        """What happens every few seconds: ages are redrawn, waiting sessions are started."""
        self._poll_resumed()
        self.update_trends()
        if isinstance(self.current_screen, WatchScreen):
            self.current_screen.tick()

    def _poll_resumed(self) -> None:
        """Starts resumed sessions that wait for a process; those whose process has ended are not resuming any more."""
        resuming = [path for path, (action, _) in self._actions.items() if action == "resuming"]
        if not resuming:
            return
        active = self.resumer.active
        if ended := [path for path in resuming if path not in active]:
            self.show_actions(ended, "")
        self.poll_resumer()

    @work(thread=True, exclusive=True, group="resume", exit_on_error=False)
    def poll_resumer(self) -> None:
        """Starts processes in a thread."""
        for message in self.resumer.poll():
            self.call_from_thread(self.notify, message, severity="error", markup=False)
