"""`--notify URL`: a message when a session fails, and one when all have ended.

The URL may contain a secret: it is in no log, plan or record, and not in the command that is shown and recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rldsl.launch.notify import check_url, post_message
from rldsl.launch.observer import Ending
from rldsl.spec.errors import SpecError
from rldsl.store.session_state import SessionState

OPTION = "--notify"


class Notifier:
    """Posts messages to a URL; without one, does nothing. `problem` is why the last one could not be posted."""

    def __init__(self, url: str | None) -> None:
        if url is not None and check_url(url) is not None:
            raise SpecError(f"{OPTION} should be a URL such as https://ntfy.sh/my-topic")
        self._url = url
        self.problem: str | None = None

    def ended(self, ending: Ending) -> None:
        """Posts that a session has failed or crashed; nothing if it is done or was stopped."""
        if ending.reason is not None:
            planned = ending.session.planned
            state = "failed" if ending.state == "failed" else "crashed"
            self._post(f"{state}: {planned.row.experiment} seed {planned.seed} ({planned.id}): {ending.reason}")

    def finished(self, sessions: Sequence[SessionState]) -> None:
        """Posts how all sessions of a plan have ended, with their returns."""
        states = Counter(one.state for one in sessions)
        total = ", ".join(f"{number:,} {state}" for state, number in states.items())
        returns = [
            f"{one.experiment} seed {one.seed}: {one.state}"
            + (f", return {one.episode_return:.1f}" if one.episode_return is not None else "")
            for one in sessions[:MOST_LISTED]
        ]
        more = [f"and {len(sessions) - MOST_LISTED} more"] if len(sessions) > MOST_LISTED else []
        self._post("\n".join([f"{len(sessions):,} sessions: {total}", *returns, *more]))

    def _post(self, text: str) -> None:
        if self._url is not None:
            self.problem = post_message(self._url, text)


MOST_LISTED = 20


def without_url(words: Sequence[str]) -> list[str]:
    """A command line without the option and its URL."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != OPTION and not word.startswith(f"{OPTION}="):
            kept.append(word)
        skip = word == OPTION
    return kept
