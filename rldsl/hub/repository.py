"""A dataset repository of the Hub: list, commit and download files. Transient errors are retried."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rldsl.hub.retry import WAITS, error_chain, http_status, with_retries

if TYPE_CHECKING:
    from huggingface_hub import HfApi

DATASET = "dataset"
MAX_FOLDERS = 8
"""Up to this number, folders are listed one by one; for more, the whole repository is listed in pages."""


class Entry(NamedTuple):
    """A file of a repository. Large files (LFS) are identified by their sha256, others by their git blob id."""

    size: int
    blob_id: str
    sha256: str | None


class Listing(NamedTuple):
    """The files below some folders of a repository at one commit; without a repository, nothing."""

    revision: str | None
    files: dict[str, Entry]


class Repository:
    """The token is read from HF_TOKEN only; HF_ENDPOINT replaces the URL of the Hub."""

    def __init__(self, name: str, waits: Sequence[float] = WAITS) -> None:
        self.name = name
        self.waits = waits

    def create(self) -> None:
        """Creates the repository, private, unless it exists."""
        with_retries(
            lambda: self._api().create_repo(self.name, repo_type=DATASET, private=True, exist_ok=True),
            f"create the dataset repository {self.name}",
            self.waits,
        )

    def files(self, folders: Sequence[str]) -> Listing:
        """Lists the files below these folders, and possibly others; empty if repository or folder do not exist."""
        return with_retries(lambda: self._list(folders), f"list the dataset repository {self.name}", self.waits)

    def commit(self, put: Mapping[str, Path], remove: Collection[str], message: str) -> None:
        """Adds and removes files in one atomic commit.

        An attempt whose response was lost may have succeeded; the retry then has nothing left to do.
        """
        with_retries(
            lambda: self._commit(put, remove, message), f"write to the dataset repository {self.name}", self.waits
        )

    def download(self, path: str, revision: str | None, folder: Path) -> Path:
        """Downloads a file at a commit to its own path below `folder`."""
        target = with_retries(
            lambda: self._api().hf_hub_download(
                self.name, path, repo_type=DATASET, revision=revision, local_dir=folder
            ),
            f"read {path} of the dataset repository {self.name}",
            self.waits,
        )
        return Path(str(target))

    def _api(self) -> HfApi:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # public by its docs

        disable_progress_bars()
        return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=os.environ.get("HF_TOKEN") or False)

    def _list(self, folders: Sequence[str]) -> Listing:
        api = self._api()
        try:
            revision = api.repo_info(self.name, repo_type=DATASET).sha
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
            tree = list(api.list_repo_tree(self.name, folder, recursive=True, revision=revision, repo_type=DATASET))
        except Exception as error:
            if _missing(error):
                return {}
            raise
        files = [item for item in tree if isinstance(item, RepoFile)]
        return {file.path: Entry(file.size, file.blob_id, file.lfs.sha256 if file.lfs else None) for file in files}

    def _commit(self, put: Mapping[str, Path], remove: Collection[str], message: str) -> None:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        existing = self._list(sorted({path.rpartition("/")[0] for path in remove})).files if remove else {}
        removed = [CommitOperationDelete(path) for path in remove if path in existing]
        added = [CommitOperationAdd(path, source) for path, source in put.items()]
        if added or removed:
            self._api().create_commit(self.name, [*removed, *added], commit_message=message, repo_type=DATASET)


def _missing(error: Exception) -> bool:
    """Whether the Hub answered 404: not found, rather than not allowed."""
    return any(http_status(cause) == 404 for cause in error_chain(error))
