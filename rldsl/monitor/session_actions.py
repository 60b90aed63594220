"""The keys that act on sessions: stop, resume, compare, repeat, TensorBoard. Files are read and written in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from rldsl.launch.local import processes
from rldsl.launch.resume import repeat_command
from rldsl.monitor.control import Outcome, Request, Resumer, resume_request, stop, stop_request
from rldsl.monitor.notifications import Notifications
from rldsl.monitor.screens.dialogs import Confirm, Diff
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.tensorboard import TensorBoard
from rldsl.report.difference import session_differences
from rldsl.report.words import count
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

if TYPE_CHECKING:
    from rldsl.monitor.queue import Queue

READ_ONLY = "this monitor is read-only: start it {how} to stop, resume and edit sessions"


class SessionActions(Notifications):
    """Every action applies to what the current screen shows as chosen, and never more than what its dialog lists."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "stop", "Stop"),
        Binding("r", "resume", "Resume"),
        Binding("d", "diff", "Diff"),
        Binding("t", "tensorboard", "TensorBoard", show=False),
        Binding("y", "copy_command", "Copy command", show=False),
    ]
    runs: Path
    queue: Queue
    sessions: dict[str, SessionSnapshot]

    def __init__(self, runs: Path, *, read_only: bool = False, notify_url: str | None = None) -> None:
        super().__init__(notify_url)
        self.runs, self.read_only = runs, read_only
        self.resumer, self.tensorboard = Resumer(runs), TensorBoard()

    def chosen(self) -> list[SessionSnapshot]:
        """The sessions that the current screen shows as chosen."""
        raise NotImplementedError

    def show_actions(self, paths: Iterable[str], action: str) -> None:
        """Shows `action` as the state of these sessions; an empty one shows their state on disk again."""
        raise NotImplementedError

    def writable(self) -> bool:
        """Whether sessions may be changed; says so if not."""
        if self.read_only:
            how = "with `--allow-actions`" if self.is_web else "without `--read-only`"
            self.notify(READ_ONLY.format(how=how), severity="warning")
        return not self.read_only

    # Stop and resume: the request is made in a thread, shown in a dialog, and carried out in a thread.

    def action_stop(self) -> None:
        if self.writable():
            self._ask(self.chosen(), self._stop_request, "none of the chosen sessions is running", self._stop)

    def action_resume(self) -> None:
        if self.writable():
            nothing = "none of the chosen sessions was stopped or failed"
            self._ask(self.chosen(), self._resume_request, nothing, self._resume)

    def _stop_request(self, chosen: Sequence[SessionSnapshot]) -> Request | None:
        return stop_request(chosen, dict(self.sessions), self.runs, self._queued_jobs(chosen))

    def _resume_request(self, chosen: Sequence[SessionSnapshot]) -> Request | None:
        return resume_request(chosen, processes(Local()), self._queued_jobs(chosen))

    def _queued_jobs(self, chosen: Sequence[SessionSnapshot]) -> set[str]:
        """The ids of queued jobs; the queues are polled only if a chosen session was submitted."""
        return {row.id for row in self.queue.poll().rows} if any(session.job for session in chosen) else set()

    @work(thread=True, group="ask", exit_on_error=False)
    def _ask(
        self,
        chosen: Sequence[SessionSnapshot],
        make_request: Callable[[Sequence[SessionSnapshot]], Request | None],
        nothing: str,
        then: Callable[[Request], object],
    ) -> None:
        request = make_request(chosen)
        if request is None:
            self.call_from_thread(self.notify, nothing)
        else:
            self.call_from_thread(self._confirm, request, then)

    def _confirm(self, request: Request, then: Callable[[Request], object]) -> None:
        if isinstance(self.screen, Confirm):  # the key was pressed twice
            return

        def answered(yes: bool | None) -> None:
            if yes:
                then(request)

        self.push_screen(Confirm(request.question, request.details), answered)

    def _stop(self, request: Request) -> None:
        self.show_actions([session.path for session in (*request.sessions, *request.others)], "stopping")
        self._run(lambda: stop(request, self.runs), request, "asked {} to checkpoint and stop")

    def _resume(self, request: Request) -> None:
        self.show_actions([session.path for session in request.sessions], "resuming")
        self._run(lambda: self.resumer.resume(request), request, "resumed {}")

    @work(thread=True, group="act", exit_on_error=False)
    def _run(self, act: Callable[[], Outcome], request: Request, success: str) -> None:
        try:
            outcome = act()
        except (StoreError, OSError) as error:
            outcome = Outcome([str(error)], [session.path for session in request.sessions])
        self.call_from_thread(self._acted, outcome, request, success)

    def _acted(self, outcome: Outcome, request: Request, success: str) -> None:
        """A queued session that does not run yet has no journal to wait for."""
        waiting = [one.path for one in (*request.queued, *request.others) if not one.live]
        self.show_actions([*outcome.failed, *waiting], "")
        for error in outcome.errors:
            self.notify(error, severity="warning", markup=False)
        if not outcome.errors:
            self.notify(success.format(count(len(request.sessions), "session")))

    # Compare, repeat, TensorBoard

    def action_diff(self) -> None:
        """Shows what differs between the two chosen sessions."""
        chosen = self.chosen()
        if len(chosen) != 2:
            self.notify(f"select two sessions with space to compare them; {len(chosen)} are chosen")
            return
        self._diff(*(SessionDir(self.runs / session.path) for session in chosen))

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _diff(self, first: SessionDir, second: SessionDir) -> None:
        try:
            differences = session_differences(first, second)
        except StoreError as error:
            self.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        self.call_from_thread(self.push_screen, Diff(first.id, second.id, differences))

    def action_copy_command(self) -> None:
        """Copies the command to the clipboard of the terminal (OSC 52, which works over SSH) and shows it."""
        chosen = self.chosen()
        if chosen and self.writable():  # it writes a plan
            self._copy_command(SessionDir(self.runs / chosen[0].path))

    @work(thread=True, exclusive=True, group="copy", exit_on_error=False)
    def _copy_command(self, directory: SessionDir) -> None:
        try:
            command = repeat_command(directory, self.runs)
        except StoreError as error:
            self.call_from_thread(self.notify, str(error), severity="error", markup=False)
            return
        self.call_from_thread(self.copy_to_clipboard, command)
        title = "copied: this command trains it again"
        self.call_from_thread(self.notify, command, title=title, timeout=15, markup=False)

    def action_tensorboard(self) -> None:
        chosen = self.chosen()
        if chosen and self.writable():
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


def with_action(session: SessionSnapshot, action: str, before: SessionSnapshot | None = None) -> SessionSnapshot:
    """The session with an action that is under way; without it once the journal shows that it has taken effect."""
    attempts = before.status.attempts if before else session.status.attempts
    over = {"stopping": not session.live, "resuming": session.live or session.status.attempts > attempts}
    return session if over.get(action, not action) else replace(session, action=action)
