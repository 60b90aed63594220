"""The keys that give sessions tags and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from rldsl.monitor.screens.pickers import Prompt
from rldsl.monitor.session_actions import SessionActions
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.words import count
from rldsl.store.errors import StoreError
from rldsl.store.notes import Notes, parse_tags, read_notes, write_notes


class SessionNotes(SessionActions):
    """Edits `notes.json` of the chosen sessions, in a thread."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("T", "tags", "Tags", show=False),
        Binding("N", "note", "Note", show=False),
    ]

    def reread(self, paths: Sequence[str]) -> None:
        """Reads these sessions again soon."""
        raise NotImplementedError

    def action_tags(self) -> None:
        """Asks for the tags of the chosen sessions."""
        chosen = self.chosen()
        if chosen and self.writable():
            tags = dict.fromkeys(tag for session in chosen for tag in session.status.tags)
            title = f"Tags of {count(len(chosen), 'session')}"
            self._prompt(title, " ".join(tags), chosen, lambda notes, text: replace(notes, tags=parse_tags(text)))

    def action_note(self) -> None:
        """Asks for the note of the chosen sessions."""
        chosen = self.chosen()
        if chosen and self.writable():
            title = f"Note on {count(len(chosen), 'session')}"
            change = lambda notes, text: replace(notes, text=text.strip())  # noqa: E731
            self._prompt(title, chosen[0].status.notes, chosen, change)

    def _prompt(
        self, title: str, text: str, chosen: Sequence[SessionSnapshot], change: Callable[[Notes, str], Notes]
    ) -> None:
        def answered(answer: str | None) -> None:
            if answer is not None:
                self._write_notes([session.path for session in chosen], lambda notes: change(notes, answer))

        self.push_screen(Prompt(title, text), answered)

    @work(thread=True, group="notes", exit_on_error=False)
    def _write_notes(self, paths: Sequence[str], change: Callable[[Notes], Notes]) -> None:
        for path in paths:
            directory = self.runs / path
            try:
                write_notes(directory, change(read_notes(directory)))
            except (OSError, StoreError) as error:
                self.call_from_thread(self.notify, str(error), severity="error", markup=False)
                return
        self.call_from_thread(self.reread, paths)
