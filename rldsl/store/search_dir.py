"""The directory of one search, `runs/.searches/<experiment>-<search id>`: what it searches, and its journal.

| file | content |
|---|---|
| `search.json` | the complete experiment and its overrides: readers need no experiment file |
| `journal.jsonl` | the decisions and results of the search, see `rldsl.search.history`; written by its driver alone |
| `workers.jsonl` | the processes that a driver on this machine started, for the next one if it is killed |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rldsl.spec.base import SCHEMA
from rldsl.spec.experiment import Experiment
from rldsl.spec.json_text import parse_object
from rldsl.spec.session import Override
from rldsl.store.claim import Claim, hold, is_held, read_heartbeat
from rldsl.store.errors import AlreadyRunning, StoreError, writing
from rldsl.store.files import TailReader, replace_json
from rldsl.store.journal import Event, Garbage, Journal, parse_event
from rldsl.store.layout import ALIVE, JOURNAL, LOCK

SEARCHES = ".searches"
"""The folder of searches in a run directory."""
SEARCH = "search.json"
WORKERS = "workers.jsonl"


class SearchDir:
    """A search on disk. `events` reads what was appended since it was last called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path / JOURNAL)
        self._claim: Claim | None = None
        self._tail = TailReader(self.journal.path)
        self._events: list[Event] = []
        self.unreadable = 0
        """Lines of the journal that are damaged, as far as it was read."""

    def __repr__(self) -> str:
        return f"SearchDir({str(self.path)!r})"

    @classmethod
    def of(cls, runs: Path, name: str, search_id: str) -> SearchDir:
        """The directory of a search, whether it exists or not."""
        return cls(runs / SEARCHES / f"{name.replace('/', '-')}-{search_id}")

    @classmethod
    def create(
        cls, runs: Path, experiment: Experiment, search_id: str, overrides: Sequence[Override] = ()
    ) -> SearchDir:
        """Creates the directory of a search; in an existing one, writes an experiment that has changed.

        Only what is not part of its identity can change: the number of trials, the launcher.
        """
        made = cls.of(runs, experiment.name, search_id)
        record = {
            "schema": SCHEMA,
            "id": search_id,
            "experiment": experiment.data(),
            "overrides": [override.data() for override in overrides],
        }
        with writing(made.path):
            made.path.mkdir(parents=True, exist_ok=True)
        if not made.exists() or made.read_record() != json.loads(json.dumps(record)):
            replace_json(made.path / SEARCH, record)
        return made

    def exists(self) -> bool:
        return (self.path / SEARCH).exists()

    @property
    def running(self) -> bool:
        """Whether a driver holds it."""
        return is_held(self.path / ALIVE)

    def read_record(self) -> dict[str, Any]:
        """The content of `search.json`."""
        try:
            return parse_object((self.path / SEARCH).read_bytes())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StoreError(f"{self.path / SEARCH} cannot be read: {reason}") from error

    def experiment(self) -> Experiment:
        """The experiment that is searched."""
        record = self.read_record()
        if record.get("schema") != SCHEMA:
            raise StoreError(f"{self.path} has schema {record.get('schema')}, this version has {SCHEMA}")
        return Experiment.parse(record.get("experiment"), root=str(self.path / SEARCH))

    def overrides(self) -> tuple[Override, ...]:
        """The overrides that the experiment was searched with."""
        given = self.read_record().get("overrides", [])
        if not isinstance(given, list):
            raise StoreError(f"{self.path / SEARCH} is damaged: its overrides are no list")
        return tuple(Override.parse(one) for one in given)

    def events(self) -> Sequence[Event]:
        """All events so far, in order; lines that are not events are skipped."""
        parsed = [parse_event(line) for line in self._tail.read_new()]
        if self._tail.restarted:
            self._events, self.unreadable = [], 0
        self.unreadable += sum(isinstance(event, Garbage) for event in parsed)
        self._events.extend(event for event in parsed if not isinstance(event, Garbage))
        return self._events

    def refuse_damage(self) -> None:
        """Raises StoreError if events are lost: what a search does next is a function of all of them."""
        self.events()
        if self.unreadable:
            lines = f"{self.unreadable:,} damaged line{'' if self.unreadable == 1 else 's'}"
            advice = "remove it to decide again; sessions that are done are not trained again"
            raise StoreError(f"{self.journal.path} has {lines}: {advice}")

    def append(self, event: str, **facts: Any) -> None:
        """Returns once the event is on the disk. Only the process that holds the claim may append."""
        if self._claim is not None:
            self._claim.verify()
        self.journal.append(event, **facts)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Holds the search for this process; raises AlreadyRunning if another driver has it."""
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                self._claim = stack.enter_context(hold(self.path / LOCK, self.path / ALIVE))
            except AlreadyRunning:
                beat = read_heartbeat(self.path / ALIVE) or {}
                where = f"on {beat['host']} as process {beat.get('pid')}" if "host" in beat else "in another process"
                raise AlreadyRunning(f"the search {self.path.name} is already running {where}") from None
            yield


def search_dirs(runs: Path) -> list[SearchDir]:
    """All searches of a run directory, sorted by name."""
    found = sorted((runs / SEARCHES).glob(f"*/{SEARCH}"))
    return [SearchDir(path.parent) for path in found]
