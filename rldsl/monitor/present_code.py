"""Whether sessions were trained by other code than the present one, which `status` says in the same words."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.store.code_version import CodeVersions
from rldsl.store.errors import StoreError
from rldsl.store.kept_sources import recorded_files
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

CHECK_SECONDS = 60.0
"""Interval after which the files of the present code are compared again: they may have been edited."""
TIME_SHARE = 0.02
"""Share of the time spent on it."""


class PresentCode:
    """Compares one session of each version of the code: all sessions with the same digest ran the same files."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.others: set[str] = set()
        """The digests of other code."""
        self._sessions: dict[str, SessionDir] = {}
        self._new: set[str] = set()
        self._next_check = 0.0

    def is_other(self, code: str | None, directory: SessionDir) -> bool:
        """Whether it is known to be other code; a digest that was not seen before is compared by the next `compare`."""
        if code is not None and code not in self._sessions:
            self._sessions[code] = directory
            self._new.add(code)
        return code in self.others

    def compare(self) -> set[str]:
        """Compares new digests, and all of them once in a while; returns those for which the answer has changed."""
        start = self.clock()
        due = start >= self._next_check
        chosen: Collection[str] = list(self._sessions) if due else self._new
        other = {code for code in chosen if _differs(code, self._sessions[code])}
        changed = {code for code in chosen if (code in other) != (code in self.others)}
        self.others ^= changed
        self._new = set()
        if due:
            self._next_check = start + max(CHECK_SECONDS, (self.clock() - start) / TIME_SHARE)
        return changed


def _differs(code: str, directory: SessionDir) -> bool:
    """Whether a session ran other code. False if that cannot be told: if its classes are defined in a file."""
    try:
        trial = Session.from_record(directory.read_session(), directory.path).trial
    except (SpecError, StoreError, OSError):
        return False
    facts = newest_provenance(directory.path)
    recorded = {name: digest for name, (digest, _) in recorded_files(facts.get("code") or {}).items()}
    file = _experiment_file(recorded, facts.get("command"))
    version = CodeVersions(file).of(trial)
    present = {name: source.digest for name, source in version.files.items()}
    if not recorded:
        return version.digest != code
    known = {name: one for name, one in recorded.items() if file or name in present or name.startswith("rldsl.")}
    return known != present


def _experiment_file(recorded: Mapping[str, str], command: object) -> Path | None:
    """The experiment file that counts, as the command named it, if it is below the working directory. Only read."""
    words = [Path(str(word)) for word in command] if isinstance(command, list) else []
    here = Path.cwd()
    paths = [here / word for word in words if word.name in recorded and word.suffix == ".py"]
    return next((path for path in paths if path.is_file() and path.resolve().is_relative_to(here)), None)
