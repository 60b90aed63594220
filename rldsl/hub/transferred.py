"""Which sessions of a run directory are the same as in a repository, as of the last push or pull.

Without it every push would compute the checksums of all sessions. Losing the file loses nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rldsl.hub.session_files import signature
from rldsl.store.errors import writing
from rldsl.store.files import replace_bytes, replace_json

FOLDER = ".hub"


class Transferred:
    """For each session the signature of its files here, and the digest of the session in the repository."""

    def __init__(self, runs: Path, repository: str) -> None:
        self.runs = runs
        self.file = runs / FOLDER / f"{repository.replace('/', '--')}.json"
        self.index_file = self.file.with_suffix(".index")
        self._known = _read(self.file)

    def digest(self, session: str) -> str | None:
        """The digest of a session in the repository when it was the same here."""
        return self._known[session][1] if session in self._known else None

    def is_same(self, session: str, digest: str, best_only: bool) -> bool:
        """Whether a session has not changed here since it had this digest in the repository."""
        known = self._known.get(session)
        return known is not None and known[1] == digest and known[0] == signature(self.runs / session, best_only)

    def index(self) -> tuple[bytes, str] | None:
        """The index of the repository and its commit, as of the last push from here."""
        try:
            revision, _, data = self.index_file.read_bytes().partition(b"\n")
        except OSError:
            return None
        return data, revision.decode("ascii", "replace")

    def remember_index(self, data: bytes, revision: str) -> None:
        """Records the index that a push has committed."""
        with writing(self.index_file):
            self.index_file.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(self.index_file, revision.encode() + b"\n" + data, durable=False)

    def remember(self, sessions: Mapping[str, tuple[str, str]]) -> None:
        """Records the signature and digest of sessions."""
        if sessions:
            self._known |= sessions
            with writing(self.file):
                self.file.parent.mkdir(parents=True, exist_ok=True)
            replace_json(self.file, self._known, durable=False)


def _read(path: Path) -> dict[str, tuple[str, str]]:
    try:
        data = json.loads(path.read_bytes())
        return {str(name): (str(before), str(digest)) for name, (before, digest) in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
