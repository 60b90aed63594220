"""A copy of a session that is about to be pushed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rldsl.hub.checksums import SHA256SUMS, checksums_text, sha256_of
from rldsl.hub.index import IndexRow, row_of
from rldsl.store.session_dir import SessionDir


@dataclass
class StagedSession:
    """A copy of a session that nothing changes any more."""

    directory: str
    files: dict[str, Path]
    digests: dict[str, str]
    signature: str
    session: SessionDir
    complete: bool = True
    """Whether no file was left out."""

    @property
    def checksums(self) -> bytes:
        return checksums_text(self.digests).encode()

    @property
    def digest(self) -> str:
        return sha256_of(self.checksums)

    def row(self) -> IndexRow:
        size = sum(path.stat().st_size for path in self.files.values())
        return row_of(self.directory, self.session, size, self.digest, [*self.files, SHA256SUMS])

    def without(self, name: str) -> None:
        """Leaves a file out."""
        self.files.pop(name, None)
        self.digests.pop(name, None)
        self.complete = False
