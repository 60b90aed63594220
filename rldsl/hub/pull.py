"""Pulls sessions from a dataset repository. What is in it was written by others: nothing of it is trusted or executed.

Every path is checked, every file has the checksum that the index leads to, and every record describes the session
whose directory it is in. What fails is refused with a sentence, and the rest continues.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rldsl.hub.checksums import SHA256SUMS, parse_checksums, sha256_of
from rldsl.hub.index import Index, IndexRow, open_index
from rldsl.hub.push import Progress
from rldsl.hub.records import problem_of_record
from rldsl.hub.remote_paths import leaves, printable, sort_out
from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError, NotAllowed, is_transient
from rldsl.hub.session_files import shared, signature
from rldsl.hub.sync import PARALLEL_DOWNLOADS, install, last_frame
from rldsl.hub.transferred import Transferred
from rldsl.store.append_only_ring import link
from rldsl.store.claim import is_held
from rldsl.store.errors import writing
from rldsl.store.session_dir import SessionDir


@dataclass
class Pulled:
    """What a pull did."""

    sessions: list[str] = field(default_factory=list)
    unchanged: int = 0
    ahead: list[str] = field(default_factory=list)
    """Sessions with more frames here than in the repository, which were left as they are."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each file or session that was refused."""


class _Refused(Exception):
    """Why a session is not pulled."""


class Pull:
    """Pulls sessions into a run directory."""

    def __init__(
        self,
        repository: Repository,
        runs: Path,
        *,
        best_only: bool = False,
        progress: Progress = lambda done, total, text: None,
    ) -> None:
        self.repository, self.runs, self.best_only, self.progress = repository, runs, best_only, progress
        self.pulled = Pulled()
        self.index, self.revision = open_index(repository)
        self._known = Transferred(runs, repository.name)
        self._done = self._total = 0

    def run(self, choose: Callable[[Index], Iterable[IndexRow]] = lambda index: index.rows.values()) -> Pulled:
        """Pulls the sessions that `choose` selects from the index."""
        rows = list(choose(self.index))
        sums = {f"{row.directory}/{SHA256SUMS}" for row in rows}
        accepted, refused = sort_out({path for row in rows for path in row.paths} - sums)
        self.pulled.refused += refused
        names: dict[str, set[str]] = {row.directory: set() for row in rows}
        for path in accepted:
            directory = "/".join(path.split("/")[:3])
            names.setdefault(directory, set()).add(path.removeprefix(f"{directory}/"))
        wanted = {row.directory: shared(names[row.directory], self.best_only) for row in rows}
        changed = [row for row in rows if not self._is_here(row, wanted[row.directory])]
        self.pulled.unchanged = len(rows) - len(changed)
        self._total = sum(len(wanted[row.directory]) for row in changed)
        with writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
        for row in changed:
            self._pull(row, wanted[row.directory])
        return self.pulled

    def _is_here(self, row: IndexRow, names: set[str]) -> bool:
        same = self._known.is_same(row.directory, row.digest, best_only=False)
        return same and all((self.runs / row.directory / name).exists() for name in names)

    def _pull(self, row: IndexRow, names: set[str]) -> None:
        """Pulls one session, or says why not."""
        try:
            with tempfile.TemporaryDirectory(dir=self.runs, prefix=".pull-", ignore_cleanup_errors=True) as stage:
                self._pull_into(Path(stage), row, names)
        except _Refused as reason:
            self.pulled.refused.append(f"refused {printable(row.directory)}: {reason}")
        except HubError as error:
            if isinstance(error, NotAllowed) or (error.__cause__ is not None and is_transient(error.__cause__)):
                raise
            self.pulled.refused.append(f"refused {printable(row.directory)}: {error}")
        self._done += len(names)
        self.progress(self._done, self._total, row.directory)

    def _pull_into(self, stage: Path, row: IndexRow, names: set[str]) -> None:
        session = SessionDir(self.runs / row.directory)
        for path in (row.directory, *(f"{row.directory}/{name}" for name in names)):
            if leaves(self.runs, path):
                raise _Refused("a symbolic link leads out of the run directory")
        if is_held(session.alive):
            raise _Refused("a process is training it here")
        digests = self._checksums(stage, row, names)
        wanted = [name for name in sorted(names) if not _has_digest(session.path / name, digests[name])]
        self._download(stage, row, wanted, digests)
        staged = stage / row.directory
        record = staged if "session.json" in wanted else session.path
        if problem := problem_of_record(SessionDir(record), row.directory):
            raise _Refused(problem)
        remote = staged if "metrics.csv" in wanted else session.path
        if session.exists() and "metrics.csv" in names and last_frame(session.path) > last_frame(remote):
            self.pulled.ahead.append(row.directory)
            return
        install(self.runs, stage, [f"{row.directory}/{name}" for name in wanted])
        self._known.remember({row.directory: (signature(session.path, best_only=False), row.digest)})
        self.pulled.sessions.append(row.directory)

    def _checksums(self, stage: Path, row: IndexRow, names: set[str]) -> dict[str, str]:
        """The checksum of each file, from the SHA256SUMS that the index has the checksum of."""
        path = self.repository.download(f"{row.directory}/{SHA256SUMS}", self.revision, stage)
        if sha256_of(path) != row.digest:
            raise _Refused(f"{SHA256SUMS} does not have the checksum that the index says")
        digests = parse_checksums(path.read_text(errors="replace"))
        if "session.json" not in names:
            raise _Refused("it has no session.json")
        if missing := sorted(names - digests.keys()):
            raise _Refused(f"{printable(missing[0])} has no checksum")
        return digests

    def _download(self, stage: Path, row: IndexRow, names: Sequence[str], digests: dict[str, str]) -> None:
        """Downloads each content once, and verifies it; files that checkpoints share become hard links."""
        first: dict[str, str] = {}
        for name in names:
            first.setdefault(digests[name], name)

        def fetch(name: str) -> None:
            path = self.repository.download(f"{row.directory}/{name}", self.revision, stage)
            if sha256_of(path) != digests[name]:
                raise _Refused(f"{printable(name)} does not have its checksum")

        with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
            list(pool.map(fetch, first.values()))
        folder = stage / row.directory
        for name in names:
            if first[digests[name]] != name:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                link(folder / first[digests[name]], folder / name)


def _has_digest(path: Path, digest: str) -> bool:
    try:
        return sha256_of(path) == digest
    except OSError:
        return False
