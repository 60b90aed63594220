"""A repository of the Hub: list, read, commit and download files. Transient errors are retried."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rldsl.hub.retry import WAITS, HubError, error_chain, http_status, status_of, with_retries

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Kind = Literal["dataset", "model"]
MAX_FOLDERS = 8
"""Up to this number, folders are listed one by one; for more, the whole repository is listed in pages."""
NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)

Content: TypeAlias = Path | bytes


class Entry(NamedTuple):
    """A file of a repository. Large files (LFS) are identified by their sha256, others by their git blob id.

    Files of a bucket have an identity of their own, the hash of the Xet storage.
    """

    size: int
    blob_id: str
    sha256: str | None
    xet_hash: str | None = None


class Listing(NamedTuple):
    """The files below some folders of a repository at one commit; without a repository, nothing."""

    revision: str | None
    files: dict[str, Entry]


class RemoteFile(NamedTuple):
    """The content of a file, and the commit that it was read at."""

    data: bytes
    revision: str


class Repository:
    """The token is read from HF_TOKEN only; HF_ENDPOINT replaces the URL of the Hub."""

    def __init__(self, name: str, waits: Sequence[float] = WAITS, kind: Kind = "dataset") -> None:
        if not NAME.fullmatch(name):
            raise HubError(f"{name!r} is not the name of a repository: it should be OWNER/NAME")
        self.name, self.waits, self.kind = name, waits, kind

    def __str__(self) -> str:
        return f"the {self.kind} repository {self.name}"

    @property
    def url(self) -> str:
        """Its page."""
        return f"{self._api().endpoint}/{'datasets/' if self.kind == 'dataset' else ''}{self.name}"

    def create(self, private: bool = True) -> None:
        """Creates the repository unless it exists; one that exists keeps its visibility."""
        with_retries(
            lambda: self._api().create_repo(self.name, repo_type=self.kind, private=private, exist_ok=True),
            f"create {self}",
            self.waits,
        )

    def files(self, folders: Sequence[str]) -> Listing:
        """Lists the files below these folders, and possibly others; empty if repository or folder do not exist."""
        return with_retries(lambda: self._list(folders), f"list {self}", self.waits)

    def read(self, path: str) -> RemoteFile | None:
        """A small file and the current commit, in one call; None if the file or the repository does not exist."""
        return with_retries(lambda: self._read(path), f"read {path} of {self}", self.waits)

    def exists(self) -> bool:
        """Whether there is such a repository, as far as the token may know."""
        return self.files([]).revision is not None

    def commit(
        self,
        put: Mapping[str, Content],
        remove: Collection[str],
        message: str,
        *,
        parent: str | None = None,
    ) -> str | None:
        """Adds and removes files in one atomic commit; returns its id, None if there was nothing to do.

        An attempt whose response was lost may have succeeded; the retry then has nothing left to do. If `parent` is
        not the newest commit any more, `Conflict` is raised and nothing changes.
        """
        return with_retries(
            lambda: self._commit(put, remove, message, parent),
            f"write to {self}",
            self.waits,
            retry_conflicts=parent is None,
        )

    def squash(self) -> None:
        """Replaces the history by one commit, so that files which were deleted do not use space."""
        with_retries(
            lambda: self._api().super_squash_history(self.name, repo_type=self.kind),
            f"squash the history of {self}",
            self.waits,
        )

    def download(self, path: str, revision: str | None, folder: Path) -> Path:
        """Downloads a file at a commit to its own path below `folder`."""
        target = with_retries(
            lambda: self._api().hf_hub_download(
                self.name, path, repo_type=self.kind, revision=revision, local_dir=folder
            ),
            f"read {path} of {self}",
            self.waits,
        )
        return Path(str(target))

    def download_cached(self, patterns: Sequence[str], revision: str | None = None) -> Path:
        """A folder of the client's cache with the files that match the patterns; offline, as they were last seen."""
        folder = with_retries(
            lambda: self._api().snapshot_download(
                self.name, repo_type=self.kind, revision=revision, allow_patterns=list(patterns)
            ),
            f"read {self}",
            self.waits[:2],  # the cache may have them
        )
        return Path(str(folder))

    def _api(self) -> HfApi:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # public by its docs

        disable_progress_bars()
        logging.getLogger("huggingface_hub.hf_api").addFilter(_is_worth_reading)
        return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=os.environ.get("HF_TOKEN") or False)

    def _read(self, path: str) -> RemoteFile | None:
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

        api = self._api()
        url = hf_hub_url(self.name, path, repo_type=self.kind, endpoint=api.endpoint)
        response = get_session().get(url, headers=build_hf_headers(token=api.token))
        if response.status_code == 404:
            return None
        hf_raise_for_status(response)
        first = (response.history or [response])[0]  # a large file is on another host, which knows no commits
        return RemoteFile(response.content, first.headers["X-Repo-Commit"])

    def _list(self, folders: Sequence[str]) -> Listing:
        api = self._api()
        try:
            revision = api.repo_info(self.name, repo_type=self.kind, expand="sha").sha
        except Exception as error:
            if _missing(error):
                return Listing(None, {})
            raise
        files: dict[str, Entry] = {}
        for folder in folders if len(folders) <= MAX_FOLDERS else [None]:
            files |= self._list_folder(api, folder, revision)
        return Listing(revision, files)

    def _list_folder(self, api: HfApi, folder: str | None, revision: str | None) -> dict[str, Entry]:
        from huggingface_hub.hf_api import RepoFile

        try:
            tree = list(api.list_repo_tree(self.name, folder, recursive=True, revision=revision, repo_type=self.kind))
        except Exception as error:
            if _missing(error):
                return {}
            raise
        files = [item for item in tree if isinstance(item, RepoFile)]
        return {file.path: Entry(file.size, file.blob_id, file.lfs.sha256 if file.lfs else None) for file in files}

    def _commit(
        self,
        put: Mapping[str, Content],
        remove: Collection[str],
        message: str,
        parent: str | None,
    ) -> str | None:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        removed = remove if parent is not None else self._existing(remove)
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            *(CommitOperationDelete(path) for path in removed),
            *(CommitOperationAdd(path, source) for path, source in put.items()),
        ]
        if not operations:
            return None
        try:
            made = self._api().create_commit(
                self.name, operations, commit_message=message, repo_type=self.kind, parent_commit=parent
            )
            return made.oid
        except Exception as error:
            known = self._existing(remove) if parent is not None and status_of(error) == 404 else remove
            if set(known) == set(remove):
                raise
            return self._commit(put, known, message, parent)  # a file to remove was no longer there

    def _existing(self, paths: Collection[str]) -> list[str]:
        folders = sorted({path.rpartition("/")[0] for path in paths})
        existing = self._list(folders).files if folders else {}
        return [path for path in paths if path in existing]


def _is_worth_reading(record: logging.LogRecord) -> bool:
    """Not that a commit had nothing to do, which happens after a lost response."""
    return not record.getMessage().startswith("No files have been modified")


def _missing(error: Exception) -> bool:
    """Whether the Hub answered 404: not found, rather than not allowed."""
    return any(http_status(cause) == 404 for cause in error_chain(error))
