"""Sessions of a run directory and their copies in a repository: pulled before work, pushed while it goes on."""

from __future__ import annotations

import hashlib
import heapq
import os
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rldsl.hub.repository import Entry, Listing, Repository
from rldsl.hub.snapshot import snapshot, travels
from rldsl.store import layout
from rldsl.store.append_only_ring import link
from rldsl.store.errors import writing
from rldsl.store.files import replace_bytes
from rldsl.store.journal import Garbage, parse_event
from rldsl.store.metrics import FRAME, last_row

DOWNLOADS = 8
"""At a time."""


class Sync:
    """Some sessions, by their paths under the run directory; the paths in the repository are the same."""

    def __init__(self, repository: Repository, runs: Path, sessions: Sequence[str]) -> None:
        self.repository = repository
        self.runs = runs
        self.sessions = sessions
        self._there: dict[str, str] = {}  # sha256 of what the repository has, as far as it is known
        self._hashed: dict[tuple[int, int, int], str] = {}  # of files that do not change, by inode, size and time

    def pull(self, *, checkpoints: bool = True) -> list[str]:
        """Brings what the repository has of the sessions; returns those that it has.

        A session that is further here than there is left as it is. Without `checkpoints` those named by their frame,
        which only the machine that goes on needs, stay there.
        """
        listing = self.repository.files(self.sessions)
        found = []
        for session in self.sessions:
            files = _files_of(session, listing, checkpoints)
            if f"{session}/{layout.SESSION}" in files:
                self._pull(session, listing.revision, files)
                found.append(session)
        return found

    def push(self) -> bool:
        """One commit of what changed since the last pull or push; whether there was anything."""
        with writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.runs, prefix=".push-", ignore_cleanup_errors=True) as stage:
            files = self._snapshots(Path(stage))
            digests = {name: self._digest(path) for name, path in files.items()}
            changed = {name: path for name, path in files.items() if self._there.get(name) != digests[name]}
            gone = [name for name in self._there if name not in files]
            if changed or gone:
                self.repository.commit(changed, gone, _words(self.sessions))
            self._there = digests
        return bool(changed or gone)

    def _snapshots(self, stage: Path) -> dict[str, Path]:
        found = {}
        for session in self.sessions:
            taken = snapshot(self.runs / session, stage / session)
            found |= {f"{session}/{name}": path for name, path in taken.items()}
        return found

    def _pull(self, session: str, revision: str | None, files: dict[str, Entry]) -> None:
        wanted = {name: entry for name, entry in files.items() if not _same(self.runs / name, entry)}
        with writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.runs, prefix=".pull-", ignore_cleanup_errors=True) as below:
            stage = Path(below)
            self._download(wanted, revision, stage)
            self._there |= {name: self._digest((stage if name in wanted else self.runs) / name) for name in files}
            home = self.runs / session
            metrics = f"{session}/{layout.METRICS}"
            there = _frame((stage if metrics in wanted else self.runs) / session) if metrics in files else -1
            if _frame(home) <= there:
                self._place(stage, wanted)

    def _download(self, wanted: dict[str, Entry], revision: str | None, stage: Path) -> None:
        """Each content once: the segments that checkpoints share are shared here too."""
        first: dict[str, str] = {}
        for name, entry in wanted.items():
            first.setdefault(entry.sha256 or name, name)
        with ThreadPoolExecutor(DOWNLOADS) as pool:
            list(pool.map(lambda name: self.repository.download(name, revision, stage), first.values()))
        for name, entry in wanted.items():
            source = first[entry.sha256 or name]
            if source != name:
                (stage / name).parent.mkdir(parents=True, exist_ok=True)
                link(stage / source, stage / name)

    def _place(self, stage: Path, names: Iterable[str]) -> None:
        """session.json comes last: a directory without it counts as absent."""
        for name in sorted(names, key=lambda name: name.endswith(f"/{layout.SESSION}")):
            target = self.runs / name
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
            if target.name == layout.JOURNAL:
                replace_bytes(target, merged(target, stage / name))
            else:
                with writing(target):
                    (stage / name).replace(target)

    def _digest(self, path: Path) -> str:
        status = path.stat()
        key = (status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._hashed:
            self._hashed[key] = _hashed(path, hashlib.sha256())
        return self._hashed[key]


def merged(here: Path, there: Path) -> bytes:
    """The journal of the repository, and in it, by their times, the lines that only this one has.

    Clocks differ, so those there keep their order; a session is created once, whatever this clock says.
    """
    lines = _lines(there)
    known = set(lines)
    own = [line for line in _lines(here) if line not in known and not (known and _event(line) == "created")]
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
    """The files of one session that may come here."""
    names = {name: name.removeprefix(f"{session}/") for name in listing.files if name.startswith(f"{session}/")}
    return {
        name: listing.files[name]
        for name, short in names.items()
        if travels(short) and (checkpoints or not _by_frame(short))
    }


def _by_frame(name: str) -> bool:
    folder, _, rest = name.partition("/")
    return folder == layout.CHECKPOINTS and rest[:1].isdigit()


def _same(path: Path, entry: Entry) -> bool:
    """Whether a file here is the one that the repository has."""
    try:
        if path.stat().st_size != entry.size:
            return False
        if entry.sha256 is not None:
            return _hashed(path, hashlib.sha256()) == entry.sha256
        return _hashed(path, hashlib.sha1(b"blob %d\0" % entry.size, usedforsecurity=False)) == entry.git
    except OSError:
        return False


def _hashed(path: Path, begun: hashlib._Hash) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: begun).hexdigest()


def _frame(session: Path) -> int:
    """How far the metrics of a session go; -1 without any."""
    row = last_row(session / layout.METRICS)
    return -1 if row is None else int(row[FRAME] or 0)


def _words(sessions: Sequence[str]) -> str:
    more = f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""
    return f"{sessions[0]}{more}, by {os.uname().nodename}"
