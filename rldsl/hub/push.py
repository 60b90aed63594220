"""Pushes sessions and other files to a dataset repository: only what changed, in commits of about a hundred files.

The repository has the layout of a run directory, a SHA256SUMS for each session, and an index. A push that was killed
leaves whole commits; the next one finds what is there, and continues.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from rldsl.hub.checksums import SHA256SUMS, sha256_of
from rldsl.hub.index import INDEX, Index, read_index
from rldsl.hub.records import problem_of_record
from rldsl.hub.repository import Content, Repository
from rldsl.hub.retry import Conflict, HubError, NotAllowed, is_transient, refused_file, status_of
from rldsl.hub.session_files import files_on_disk, shared, signature
from rldsl.hub.snapshot import snapshot
from rldsl.hub.staged import StagedSession
from rldsl.hub.transferred import Transferred
from rldsl.store import layout
from rldsl.store.errors import StoreError, writing
from rldsl.store.secrets import offenders
from rldsl.store.session_dir import SessionDir

FILES_PER_COMMIT = 100
FILES_PER_INDEX = 1000
"""Files after which index, tables and card are committed too."""
MOST_CONFLICTS = 12
MOST_REFUSED = 3
"""Files that may be refused in a row before the rest is not tried any more."""

T = TypeVar("T", Path, Content)

Progress = Callable[[int, int, str], None]
"""Called with the number of files that are done, the number of all, and what happened."""


@dataclass(frozen=True)
class Changes:
    """What a commit changes, for those who describe the repository in tables and cards."""

    index: Index
    """Of the whole repository, with the changes."""
    staged: Mapping[str, SessionDir]
    """The sessions that change, by directory."""
    local: Mapping[str, SessionDir]
    """Other sessions that are the same here and in the repository."""
    read: Callable[[str], bytes | None]
    """Reads a file of the repository."""


Describe = Callable[[Changes], Mapping[str, bytes]]
"""Makes the files that describe a repository."""


@dataclass
class Pushed:
    """What a push did."""

    sessions: list[str] = field(default_factory=list)
    unchanged: int = 0
    files: int = 0
    others: int = 0
    """Of these, files that belong to no session."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each file that was not uploaded."""


class Push:
    """Pushes sessions of a run directory."""

    def __init__(
        self,
        repository: Repository,
        runs: Path,
        describe: Describe,
        *,
        private: bool = True,
        best_only: bool = False,
        audited: bool = False,
        progress: Progress = lambda done, total, text: None,
    ) -> None:
        """`audited` marks the sessions as such."""
        self.audited = audited
        self.repository, self.runs, self.describe = repository, runs, describe
        self.private, self.best_only, self.progress = private, best_only, progress
        self.pushed = Pushed()
        self._index = Index()
        self._revision: str | None = None
        self._fresh = False
        self._known = Transferred(runs, repository.name)
        self._total = 0

    def run(self, sessions: Sequence[str], extra: Mapping[str, Content] | None = None, benchmark: str = "") -> Pushed:
        """Pushes sessions, given by their paths below the run directory, and other files with a benchmark table."""
        self._open()
        changed = [one for one in sessions if self._may_differ(one)]
        if not changed and not extra and not self._fresh:
            self._read_index()  # what is in the repository may have changed
            changed = [one for one in sessions if self._may_differ(one)]
        self.pushed.unchanged = len(sessions) - len(changed)
        self._total = sum(len(shared(_names(self.runs / one), self.best_only)) for one in changed) + len(extra or {})
        with writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
        kept = self._without_secrets(dict(extra or {}), "")
        rest = iter(changed)
        while batch := self._next_batch(rest):
            with tempfile.TemporaryDirectory(dir=self.runs, prefix=".push-", ignore_cleanup_errors=True) as stage:
                staged = [one for name in batch if (one := self._stage(name, Path(stage))) is not None]
                self._publish(staged, {})
        if kept:
            self._publish([], kept, benchmark)
            self.pushed.others = len(kept)
        return self.pushed

    def run_at_once(self, sessions: Sequence[str], extra: Mapping[str, Content], benchmark: str) -> Pushed:
        """Pushes sessions and other files in one commit: all of it, or nothing."""
        self._open()
        self._total = sum(len(shared(_names(self.runs / one), self.best_only)) for one in sessions) + len(extra)
        with tempfile.TemporaryDirectory(dir=self.runs, prefix=".push-", ignore_cleanup_errors=True) as stage:
            staged = [one for name in sessions if (one := self._stage(name, Path(stage))) is not None]
            kept = self._without_secrets(dict(extra), "")
            if self.pushed.refused:
                raise StoreError(f"nothing was pushed: {self.pushed.refused[0]}")
            data = {f"{one.directory}/{name}": one.files[name] for one in staged for name in one.files} | kept
            self._commit(staged, data, benchmark)
            self._finish(staged, len(data))
        self.pushed.others = len(kept)
        return self.pushed

    def _next_batch(self, sessions: Iterator[str]) -> list[str]:
        batch, files = [], 0
        while files < FILES_PER_INDEX and (one := next(sessions, None)) is not None:
            batch.append(one)
            files += len(_names(self.runs / one))
        return batch

    def _open(self) -> None:
        """Takes the index from the last push from here. If it is outdated, the first commit is a `Conflict`."""
        known = self._known.index()
        try:
            if known is None:
                raise StoreError("there was no push from here")
            self._index, self._revision, self._fresh = read_index(known[0], "the last push"), known[1], False
        except StoreError:
            self._read_index()

    def _read_index(self) -> None:
        """Reads the index of the repository, and creates the repository if there is none."""
        self._fresh = True
        found = self.repository.read(INDEX)
        if found is None:
            if not self.repository.exists():
                self.repository.create(self.private)
            self._index, self._revision = Index(), self.repository.files([]).revision
        else:
            self._index, self._revision = read_index(found.data, str(self.repository)), found.revision

    def _may_differ(self, session: str) -> bool:
        """Whether a session may differ from the repository, by the names, sizes and times of its files."""
        row = self._index.rows.get(session)
        return row is None or not self._known.is_same(session, row.digest, self.best_only)

    def _stage(self, session: str, stage: Path) -> StagedSession | None:
        """Copies a session; None if it is the same in the repository, or if its record cannot be read."""
        before = signature(self.runs / session, self.best_only)
        unreadable: dict[str, str] = {}
        files = snapshot(self.runs / session, stage / session, unreadable)
        files = {name: files[name] for name in sorted(shared(files, self.best_only))}
        for name, reason in unreadable.items():
            self._refuse(f"{session}/{name}", f"it cannot be read: {reason}")
        allowed = self._without_secrets(files, f"{session}/")
        complete = not unreadable and len(allowed) == len(files)
        files = allowed
        digests = {name: sha256_of(path) for name, path in files.items()}
        staged = StagedSession(session, files, digests, before, SessionDir(stage / session), complete)
        row = self._index.rows.get(session)
        if problem := problem_of_record(staged.session, session):
            self._refuse(f"{session}/{layout.SESSION}", problem)
            self._total -= len(files)
            return None
        if row is not None and row.digest == staged.digest:
            self.pushed.unchanged += 1
            self._total -= len(files)
            self._remember([staged])
            return None
        return staged

    def _without_secrets(self, files: dict[str, T], folder: str) -> dict[str, T]:
        """The files but those that look like keys or credentials, which are listed."""
        found = offenders(content for content in files.values() if isinstance(content, Path))
        for name, content in files.items():
            if isinstance(content, Path) and content in found:
                self._refuse(f"{folder}{name}", f"it {found[content]}")
        return {name: content for name, content in files.items() if content not in found}

    def _publish(self, staged: list[StagedSession], extra: dict[str, Content], benchmark: str = "") -> None:
        """Uploads files, and then what describes them; few files in the same commit."""
        data: dict[str, Content] = {f"{one.directory}/{name}": one.files[name] for one in staged for name in one.files}
        data |= extra
        if not data:
            return
        if len(data) <= FILES_PER_COMMIT:
            try:
                self._commit(staged, data, benchmark)
            except HubError as error:
                if not _may_be_one_file(error):
                    raise
            else:
                self._finish(staged, len(data))
                return
        refused = set(self._upload(data))
        for one in staged:
            for name in [name for name in one.files if f"{one.directory}/{name}" in refused]:
                one.without(name)
        staged = [one for one in staged if one.files]
        self._commit(staged, {}, benchmark)
        self._finish(staged, 0)

    def _upload(self, data: Mapping[str, Content]) -> Iterator[str]:
        """Uploads files in batches; gives those that cannot be uploaded."""
        rest = iter(data.items())
        while batch := dict(islice(rest, FILES_PER_COMMIT)):
            yield from self._upload_batch(batch)

    def _upload_batch(self, batch: Mapping[str, Content], refused_before: int = 0) -> Iterator[str]:
        """Uploads files in one commit; if one of them is refused, the others without it."""
        try:
            self._with_conflicts(lambda: self.repository.commit(batch, [], _message(batch), parent=self._revision))
        except HubError as error:
            if not _may_be_one_file(error) or refused_before >= MOST_REFUSED:
                raise
            path = refused_file(error)
            if path in batch or len(batch) == 1:
                path = path if path in batch else next(iter(batch))
                self._refuse(str(path), str(error.__cause__ or error).splitlines()[0])
                yield str(path)
                if others := {name: batch[name] for name in batch if name != path}:
                    yield from self._upload_batch(others)
                return
            names, failed = list(batch), 0
            for half in (names[: len(names) // 2], names[len(names) // 2 :]):
                for path in self._upload_batch({name: batch[name] for name in half}, refused_before + failed):
                    failed += 1
                    yield path
        else:
            self._advance(len(batch), _message(batch))

    def _commit(self, staged: Sequence[StagedSession], data: Mapping[str, Content], benchmark: str) -> None:
        """Commits files together with the index, checksums, tables and card."""

        def commit() -> str | None:
            rows = {one.directory: replace(one.row(), audited=self.audited) for one in staged}
            index = Index({**self._index.rows, **rows}, benchmark or self._index.benchmark)
            changes = Changes(index, {one.directory: one.session for one in staged}, self._local(rows), self._read)
            sums = {f"{one.directory}/{SHA256SUMS}": one.checksums for one in staged}
            put: dict[str, Content] = {**data, **sums, **self.describe(changes), INDEX: index.data()}
            old = {path for name in rows if name in self._index.rows for path in self._index.rows[name].paths}
            removed = sorted(old - {path for row in rows.values() for path in row.paths})
            made = self.repository.commit(put, removed, _message(rows or data), parent=self._revision)
            self._index = index
            if made is not None:
                self._known.remember_index(index.data(), made)
            return made

        self._with_conflicts(commit)

    def _with_conflicts(self, commit: Callable[[], str | None]) -> None:
        """Commits; if somebody else has committed in the meantime, again on top of that."""
        for attempt in range(MOST_CONFLICTS):
            try:
                self._revision = commit() or self._revision
                return
            except HubError as error:
                gone = status_of(error) == 404 and not self._fresh
                if attempt == MOST_CONFLICTS - 1 or not (isinstance(error, Conflict) or gone):
                    raise
                time.sleep(random.uniform(0, 0.2 * attempt))
                self._read_index()

    def _read(self, path: str) -> bytes | None:
        found = self.repository.read(path)
        return None if found is None else found.data

    def _local(self, without: Mapping[str, object]) -> dict[str, SessionDir]:
        same = {name for name, row in self._index.rows.items() if self._known.digest(name) == row.digest}
        return {name: SessionDir(self.runs / name) for name in same - set(without)}

    def _finish(self, staged: Sequence[StagedSession], files: int) -> None:
        self.pushed.sessions += [one.directory for one in staged]
        self._remember(staged)
        self._advance(files, _message([one.directory for one in staged]))

    def _remember(self, staged: Sequence[StagedSession]) -> None:
        """Of a session whose files are not all there, nothing: the next push tries again."""
        self._known.remember({one.directory: (one.signature, one.digest) for one in staged if one.complete})

    def _advance(self, files: int, text: str) -> None:
        self.pushed.files += files
        if files:
            self.progress(self.pushed.files, self._total, text)

    def _refuse(self, path: str, reason: str) -> None:
        sentence = f"not pushed {path}: {reason}"
        if sentence not in self.pushed.refused:
            self.pushed.refused.append(sentence)


def _may_be_one_file(error: HubError) -> bool:
    """Whether the others may succeed without one of the files."""
    cause = error.__cause__
    return not isinstance(error, NotAllowed | Conflict) and cause is not None and not is_transient(cause)


def _names(session: Path) -> list[str]:
    return list(files_on_disk(session))


def _message(names: Mapping[str, object] | Sequence[str]) -> str:
    first = next(iter(names), "index")
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{first}{more}"
