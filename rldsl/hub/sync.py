"""Synchronises sessions of a run directory with a Hub repository: pulled before training, pushed during it."""

from __future__ import annotations

import hashlib
import heapq
import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rldsl.hub.bucket import xet_hash
from rldsl.hub.live import Store
from rldsl.hub.repository import Entry, Listing
from rldsl.hub.retry import HubError, status_of
from rldsl.hub.snapshot import is_synced, snapshot
from rldsl.store import layout
from rldsl.store.append_only_ring import link
from rldsl.store.errors import writing
from rldsl.store.files import replace_bytes
from rldsl.store.journal import Garbage, parse_event
from rldsl.store.metrics import FRAME, last_row

PARALLEL_DOWNLOADS = 8
SQUASHED_MEANWHILE = 3
"""How often the files are listed again because the history was squashed after they had been listed."""


class RevisionGone(HubError):
    """The commit that was listed does not exist any more."""


class Sync:
    """Synchronises some sessions, given by their paths below the run directory, which the repository uses too."""

    def __init__(self, repository: Store, runs: Path, sessions: Sequence[str]) -> None:
        self.repository = repository
        self.runs = runs
        self.sessions = sessions
        self._remote: dict[str, str] = {}  # sha256 of the files in the repository, as of the last pull or push
        self._digests: dict[tuple[int, int, int], str] = {}  # sha256 by inode, size and modification time

    def pull(self, *, checkpoints: bool = True) -> list[str]:
        """Downloads the sessions; returns those that the repository has.

        A session that has more frames here than in the repository is not changed. Without `checkpoints`, those named
        by their frame, which are needed only to resume training, are not downloaded; tagged ones (`best`) are.
        """
        for _ in range(SQUASHED_MEANWHILE):
            with suppress(RevisionGone):
                return self._pull_listed(checkpoints)
        return self._pull_listed(checkpoints)

    def _pull_listed(self, checkpoints: bool) -> list[str]:
        listing = self.repository.files(self.sessions)
        pulled = []
        for session in self.sessions:
            files = _files_of(session, listing, checkpoints)
            if f"{session}/{layout.SESSION}" in files:
                self._pull(session, listing.revision, files)
                pulled.append(session)
        return pulled

    def push(self) -> bool:
        """Commits what changed since the last pull or push; returns whether there was anything."""
        with writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.runs, prefix=".push-", ignore_cleanup_errors=True) as stage:
            files = self._snapshots(Path(stage))
            digests = {name: self._digest(path) for name, path in files.items()}
            changed = {name: path for name, path in files.items() if self._remote.get(name) != digests[name]}
            deleted = [name for name in self._remote if name not in files]
            if changed or deleted:
                self.repository.commit(changed, deleted, _commit_message(self.sessions))
            self._remote = digests
        return bool(changed or deleted)

    def _snapshots(self, stage: Path) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for session in self.sessions:
            copied = snapshot(self.runs / session, stage / session)
            files |= {f"{session}/{name}": path for name, path in copied.items()}
        return files

    def _pull(self, session: str, revision: str | None, files: dict[str, Entry]) -> None:
        wanted = {name: entry for name, entry in files.items() if not _is_same(self.runs / name, entry)}
        with writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.runs, prefix=".pull-", ignore_cleanup_errors=True) as folder:
            stage = Path(folder)
            self._download(wanted, revision, stage)
            self._remote |= {name: self._digest((stage if name in wanted else self.runs) / name) for name in files}
            metrics = f"{session}/{layout.METRICS}"
            remote_frame = last_frame((stage if metrics in wanted else self.runs) / session) if metrics in files else -1
            if last_frame(self.runs / session) <= remote_frame:
                install(self.runs, stage, wanted)

    def _download(self, wanted: dict[str, Entry], revision: str | None, stage: Path) -> None:
        """Downloads each content once: files that checkpoints share become hard links."""
        first: dict[str, str] = {}
        for name, entry in wanted.items():
            first.setdefault(entry.sha256 or entry.xet_hash or name, name)
        try:
            with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
                list(pool.map(lambda name: self.repository.download(name, revision, stage), first.values()))
        except HubError as error:
            if status_of(error) == 404:
                raise RevisionGone(str(error)) from error
            raise
        for name, entry in wanted.items():
            source = first[entry.sha256 or entry.xet_hash or name]
            if source != name:
                (stage / name).parent.mkdir(parents=True, exist_ok=True)
                link(stage / source, stage / name)

    def _digest(self, path: Path) -> str:
        status = path.stat()
        key = (status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._digests:
            self._digests[key] = _hash_file(path, hashlib.sha256())
        return self._digests[key]


def install(runs: Path, stage: Path, names: Iterable[str]) -> None:
    """Moves files into the run directory, session.json last: a directory without it counts as absent."""
    for name in sorted(names, key=lambda name: name.endswith(f"/{layout.SESSION}")):
        target = runs / name
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        if target.name == layout.JOURNAL:
            replace_bytes(target, merge_journals(target, stage / name))
        else:
            with writing(target):
                (stage / name).replace(target)


def merge_journals(local: Path, remote: Path) -> bytes:
    """The remote journal with the lines that only the local one has, inserted by their times.

    Clocks of machines differ, so the remote lines keep their order. Of the two events `created`, the remote one stays.
    """
    lines = _lines(remote)
    known = set(lines)
    own = [line for line in _lines(local) if line not in known and not (known and _event(line) == "created")]
    return "".join(f"{line}\n" for line in heapq.merge(lines, own, key=_time)).encode()


def _lines(path: Path) -> list[str]:
    text = path.read_text(errors="replace") if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def _event(line: str) -> str | None:
    event = parse_event(line)
    return None if isinstance(event, Garbage) else event["event"]


def _time(line: str) -> float:
    event = parse_event(line)
    time = None if isinstance(event, Garbage) else event.get("time")
    return float(time) if isinstance(time, int | float) else 0.0


def _files_of(session: str, listing: Listing, checkpoints: bool) -> dict[str, Entry]:
    """The files of one session to download."""
    names = {name: name.removeprefix(f"{session}/") for name in listing.files if name.startswith(f"{session}/")}
    return {
        name: listing.files[name]
        for name, short in names.items()
        if is_synced(short) and (checkpoints or not _is_frame_checkpoint(short))
    }


def _is_frame_checkpoint(name: str) -> bool:
    """Whether a file belongs to a checkpoint named by its frame, unlike a tagged one."""
    folder, _, rest = name.partition("/")
    return folder == layout.CHECKPOINTS and rest[:1].isdigit()


def _is_same(path: Path, entry: Entry) -> bool:
    """Whether a local file has the content of a file in the repository."""
    try:
        if path.stat().st_size != entry.size:
            return False
        if entry.xet_hash is not None:
            return xet_hash(path) == entry.xet_hash
        if entry.sha256 is not None:
            return _hash_file(path, hashlib.sha256()) == entry.sha256
        return _hash_file(path, hashlib.sha1(b"blob %d\0" % entry.size, usedforsecurity=False)) == entry.blob_id
    except OSError:
        return False


def _hash_file(path: Path, digest: hashlib._Hash) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def last_frame(session: Path) -> int:
    """The frame of the last log point of a session; -1 without one."""
    row = last_row(session / layout.METRICS)
    return -1 if row is None else int(row[FRAME] or 0)


def _commit_message(sessions: Sequence[str]) -> str:
    more = f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""
    return f"{sessions[0]}{more}, by {os.uname().nodename}"
