"""A dataset repository of the Hub: what is in it, whole commits, downloads. Every call is made again if need be."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rldsl.hub.retry import WAITS, HubError, chain, status, with_retries

if TYPE_CHECKING:
    from huggingface_hub import HfApi

DATASET = "dataset"
MOST_FOLDERS = 8
"""That are listed one by one; for more, all of the repository is, a thousand files an answer."""


class Entry(NamedTuple):
    """A file of a repository. A large one is known by its sha256, a small one by the id that git gives it."""

    size: int
    git: str
    sha256: str | None


class Listing(NamedTuple):
    """The files below a folder of a repository, as they were at one commit."""

    revision: str | None
    files: dict[str, Entry]


class Repository:
    """The token comes from HF_TOKEN alone, and the address of the Hub from HF_ENDPOINT if it is another."""

    def __init__(self, name: str, waits: Sequence[float] = WAITS) -> None:
        self.name = name
        self.waits = waits

    def create(self) -> None:
        """Makes it, for its owner alone, unless it is there."""
        with_retries(
            lambda: self._api().create_repo(self.name, repo_type=DATASET, private=True, exist_ok=True),
            f"make the dataset repository {self.name}",
            self.waits,
        )

    def files(self, folders: Sequence[str]) -> Listing:
        """What is below these folders, and perhaps more; nothing where there is no such repository or folder."""
        return with_retries(lambda: self._list(folders), f"list the dataset repository {self.name}", self.waits)

    def commit(self, put: Mapping[str, Path], remove: Collection[str], words: str) -> None:
        """One commit: all of it or nothing. A try whose answer was lost may have done it, and leaves nothing to do."""
        with_retries(
            lambda: self._commit(put, remove, words), f"write to the dataset repository {self.name}", self.waits
        )

    def download(self, path: str, revision: str | None, below: Path) -> Path:
        """A file as it was at a commit, under its own path in `below`."""
        found = with_retries(
            lambda: self._api().hf_hub_download(self.name, path, repo_type=DATASET, revision=revision, local_dir=below),
            f"read {path} of the dataset repository {self.name}",
            self.waits,
        )
        return Path(str(found))

    def _api(self) -> HfApi:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars

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
        found: dict[str, Entry] = {}
        for folder in folders if len(folders) <= MOST_FOLDERS else [None]:
            found |= self._below(api, folder, revision)
        return Listing(revision, found)

    def _below(self, api: HfApi, folder: str | None, revision: str | None) -> dict[str, Entry]:
        from huggingface_hub.hf_api import RepoFile

        try:
            tree = list(api.list_repo_tree(self.name, folder, recursive=True, revision=revision, repo_type=DATASET))
        except Exception as error:
            if _missing(error):
                return {}
            raise
        files = [one for one in tree if isinstance(one, RepoFile)]
        return {one.path: Entry(one.size, one.blob_id, one.lfs.sha256 if one.lfs else None) for one in files}

    def _commit(self, put: Mapping[str, Path], remove: Collection[str], words: str) -> None:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        there = self._list(sorted({path.rpartition("/")[0] for path in remove})).files if remove else {}
        removed = [CommitOperationDelete(path) for path in remove if path in there]
        added = [CommitOperationAdd(path, source) for path, source in put.items()]
        if added or removed:
            self._api().create_commit(self.name, [*removed, *added], commit_message=words, repo_type=DATASET)


def _missing(error: Exception) -> bool:
    """Whether it is not there, rather than not allowed."""
    return any(status(one) == 404 for one in chain(error))


__all__ = ["Entry", "HubError", "Listing", "Repository"]
