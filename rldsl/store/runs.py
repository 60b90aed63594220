"""The runs directory: `<env>/<agent>-<trial>/seed-<n>` for every session, found by scanning, without an index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rldsl.store import layout
from rldsl.store.errors import SessionNotFound
from rldsl.store.session_dir import SessionDir

MOST_SHOWN = 8


class Runs:
    def __init__(self, root: Path) -> None:
        self.root = root

    def sessions(self) -> Iterator[SessionDir]:
        """Every session, sorted by environment, trial and seed; other files and directories are ignored."""
        for path in self._scan():
            yield SessionDir(self.root / path)

    def existing(self) -> set[str]:
        """The relative paths of all sessions."""
        return set(self._scan())

    def find(self, name: str) -> SessionDir:
        """The one session that `name` means: a path, the beginning of an id, or a part of an id or path."""
        for path in (Path(name), self.root / name):
            if SessionDir(path).exists():
                return SessionDir(path)
        ids = {path: SessionDir(self.root / path).id for path in self._scan()}
        matches = (
            [path for path, id in ids.items() if id == name]
            or [path for path, id in ids.items() if id.startswith(name)]
            or [path for path, id in ids.items() if name in path or name in id]
        )
        if not matches:
            raise SessionNotFound(f"no session in {self.root} matches {name!r}{_nearest(name, [*ids.values(), *ids])}")
        if len(matches) > 1:
            raise SessionNotFound(f"{name!r} matches more than one session: {_listed(matches)}")
        return SessionDir(self.root / matches[0])

    def find_all(self, name: str) -> list[SessionDir]:
        """The sessions that `name` means: all of a trial if it is (the beginning of) its id, otherwise the one."""
        sessions = [] if Path(name).exists() else [one for one in self.sessions() if one.id.startswith(name)]
        return sessions if len({one.trial for one in sessions}) == 1 else [self.find(name)]

    def _scan(self) -> Iterator[str]:
        """Relative paths, built as text: there may be ten thousand of them."""
        for env in _directories(str(self.root)):
            for trial in filter(layout.trial_of, _directories(f"{self.root}/{env}")):
                for seed in _seeds(f"{self.root}/{env}/{trial}"):
                    path = f"{env}/{trial}/{seed}"
                    if os.path.exists(f"{self.root}/{path}/{layout.SESSION}"):  # noqa: PTH110
                        yield path


def _seeds(path: str) -> list[str]:
    """The directories of seeds, in the order of the seeds."""
    seeds = {name: seed for name in _directories(path) if (seed := layout.seed_of(name)) is not None}
    return sorted(seeds, key=seeds.__getitem__)


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return []


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _nearest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=3, cutoff=0.4)
    return f"; the nearest are {', '.join(close)}" if close else ""
