"""Where running sessions are kept: a bucket where the client has them, else a dataset repository with short history."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from rldsl.hub.bucket import Bucket, client_has_buckets
from rldsl.hub.repository import Content, Listing, Repository
from rldsl.hub.retry import WAITS, HubError, status_of

COMMITS_PER_SQUASH = 20
NO_BUCKETS = (404, 405, 501)
"""HTTP statuses of a server that has no buckets."""


class Store(Protocol):
    """Files of sessions on the Hub."""

    def create(self) -> None: ...

    def files(self, folders: Sequence[str]) -> Listing: ...

    def commit(self, put: Mapping[str, Content], remove: Collection[str], message: str) -> Any: ...

    def download(self, path: str, revision: str | None, folder: Path) -> Path: ...


class SquashedRepository(Repository):
    """A dataset repository whose history is squashed now and then: replaced checkpoints would fill it."""

    _commits = 0

    def commit(
        self, put: Mapping[str, Content], remove: Collection[str], message: str, *, parent: str | None = None
    ) -> str | None:
        made = super().commit(put, remove, message, parent=parent)
        self._commits += 1
        if self._commits % COMMITS_PER_SQUASH == 0:
            self.squash()
        return made


class LiveStore:
    """A bucket or a dataset repository of the same name, whichever exists; if neither does, preferably a bucket."""

    def __init__(self, name: str, waits: Sequence[float] = WAITS) -> None:
        self.name = name
        self.bucket, self.repository = Bucket(name, waits), SquashedRepository(name, waits)

    @cached_property
    def store(self) -> Bucket | SquashedRepository:
        """Where the sessions are."""
        if not client_has_buckets():
            return self.repository
        return self.bucket if self.bucket.exists() or not self.repository.exists() else self.repository

    def create(self) -> None:
        """Creates the bucket or the repository, private, unless it exists."""
        try:
            self.store.create()
        except HubError as error:
            if self.store is self.repository or status_of(error) not in NO_BUCKETS:
                raise
            self.store = self.repository
            self.repository.create()

    def files(self, folders: Sequence[str]) -> Listing:
        """Lists the files below these folders; empty if there are none."""
        try:
            return self.store.files(folders)
        except HubError as error:
            if self.store is self.bucket and status_of(error) in NO_BUCKETS:
                return Listing(None, {})
            raise

    def commit(self, put: Mapping[str, Content], remove: Collection[str], message: str) -> None:
        """Adds and removes files."""
        self.store.commit(put, remove, message)

    def download(self, path: str, revision: str | None, folder: Path) -> Path:
        """Downloads a file to its own path below `folder`."""
        return self.store.download(path, revision, folder)
