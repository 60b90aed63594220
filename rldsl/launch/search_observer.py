"""What the driver of a search reports to its caller while it runs. `launch` itself prints nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from rldsl.launch.observer import FollowedSession
from rldsl.search.history import History
from rldsl.store.journal import Event


class SearchObserver(Protocol):
    """Receives the events of a search, in the order in which they happen."""

    def journalled(self, event: Event, history: History) -> None:
        """An event was written to the journal; `history` includes it. Events before the driver started are not."""

    def progress(self, history: History, running: Collection[FollowedSession]) -> None:
        """The sessions that run now; called several times per second on this machine."""

    def stopping(self, requests: int) -> None:
        """The user asked to stop, for the n-th time; sessions of this machine checkpoint first, the second kills."""
