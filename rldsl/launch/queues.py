"""Sessions joined with the queues that hold their jobs: each queue is asked once, about all of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from rldsl.launch.contract import Backend, QueueState, place_of
from rldsl.launch.tickets import Ticket, newest, read_tickets
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError

UNKNOWN = QueueState()


class QueuedJob(NamedTuple):
    """The newest job of a session, and how its queue says that it stands."""

    ticket: Ticket
    state: QueueState


class Queues:
    """All that was ever submitted from a run directory, and what the queues say of it now."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.tickets = newest(read_tickets(runs))
        self.notes: list[str] = []
        """Why a queue could not be asked."""

    def held(self, sessions: Iterable[str]) -> dict[str, QueuedJob]:
        """The jobs of these sessions, as far as they have any."""
        chosen = {id: self.tickets[id] for id in sessions if id in self.tickets}
        states = self._states(chosen.values())
        return {id: QueuedJob(ticket, states.get(ticket.job_id, UNKNOWN)) for id, ticket in chosen.items()}

    def of_trials(self, trials: Collection[str]) -> list[Ticket]:
        """The newest jobs of the sessions of these trials."""
        return [ticket for id, ticket in self.tickets.items() if id.rpartition("-s")[0] in trials]

    def cancel(self, tickets: Iterable[Ticket]) -> list[str]:
        """Ends jobs; a sentence for each queue that did not do so."""
        refused = []
        for place, some in self._by_place(tickets):
            try:
                place.cancel([ticket.job_id for ticket in some])
            except StoreError as error:
                refused.append(str(error))
        return refused

    def fetch(self, tickets: Iterable[Ticket]) -> None:
        """Brings home what is elsewhere; a queue that cannot is noted."""
        for place, some in self._by_place(tickets):
            try:
                place.fetch(some)
            except StoreError as error:
                self.notes.append(str(error))

    def last_words(self, ticket: Ticket) -> list[str]:
        """What the queue has of a job's output."""
        return place_of(ticket.spec(), self.runs).last_words(ticket)

    def _states(self, tickets: Iterable[Ticket]) -> dict[str, QueueState]:
        found: dict[str, QueueState] = {}
        for place, some in self._by_place(tickets):
            try:
                found |= place.states([ticket.job_id for ticket in some])
            except StoreError as error:
                self.notes.append(str(error))
        return found

    def _by_place(self, tickets: Iterable[Ticket]) -> list[tuple[Backend, list[Ticket]]]:
        """Each queue with its jobs, each job once."""
        alike: dict[str, dict[str, Ticket]] = defaultdict(dict)
        for ticket in tickets:
            alike[json.dumps(ticket.launcher)][ticket.job_id] = ticket
        places: dict[str, Backend] = {}
        groups: dict[str, list[Ticket]] = defaultdict(list)
        for some in alike.values():
            try:
                launcher = next(iter(some.values())).spec()
                if launcher.queue not in places:
                    places[launcher.queue] = place_of(launcher, self.runs)
            except SpecError as error:
                self.notes.append(str(error))
                continue
            groups[launcher.queue] += some.values()
        return [(places[queue], some) for queue, some in groups.items()]
