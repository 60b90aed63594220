"""A bucket of the Hub: files without history, in the Xet storage. The natural home of checkpoints that are replaced."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rldsl.hub.repository import NAME, Content, Entry, Listing
from rldsl.hub.retry import WAITS, HubError, StorageUnavailable, status_of, with_retries
from rldsl.store import layout

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")


def client_has_buckets() -> bool:
    """Whether the client on this machine can use buckets: they need its Xet storage."""
    from huggingface_hub import HfApi, constants

    return hasattr(HfApi, "batch_bucket_files") and find_spec("hf_xet") is not None and not constants.HF_HUB_DISABLE_XET


def xet_hash(path: Path) -> str:
    """The hash of a file in the Xet storage."""
    from hf_xet import hash_files

    return str(hash_files([str(path)])[0].hash)


class Bucket:
    """The files of running sessions. The token is read from HF_TOKEN only; HF_ENDPOINT replaces the URL of the Hub."""

    def __init__(self, name: str, waits: Sequence[float] = WAITS) -> None:
        if not NAME.fullmatch(name):
            raise HubError(f"{name!r} is not the name of a bucket: it should be OWNER/NAME")
        self.name, self.waits = name, waits

    def __str__(self) -> str:
        return f"the bucket {self.name}"

    def create(self, private: bool = True) -> None:
        """Creates the bucket unless it exists."""
        self._retried(lambda: self._api().create_bucket(self.name, private=private, exist_ok=True), f"create {self}")

    def exists(self) -> bool:
        """Whether there is such a bucket, as far as the token may know."""
        try:
            self._retried(lambda: self._api().bucket_info(self.name), f"find {self}")
        except HubError as error:
            if status_of(error) in (404, 501):
                return False
            raise
        return True

    def files(self, folders: Sequence[str]) -> Listing:
        """Lists the files below these folders; a bucket has no revisions."""
        return self._retried(lambda: self._list(folders), f"list {self}")

    def commit(self, put: Mapping[str, Content], remove: Collection[str], message: str) -> None:
        """Adds and removes files. This is not atomic, so the order matters to those who read at the same time.

        Metrics come before the checkpoints that follow them, and old checkpoints are removed last: at any time there
        is a complete checkpoint, and incomplete ones are recognised by their manifest.
        """
        checkpoints = {path: content for path, content in put.items() if f"/{layout.CHECKPOINTS}/" in path}
        others = {path: content for path, content in put.items() if path not in checkpoints}
        for files in (others, checkpoints):
            if files:
                self._retried(partial(self._add, files), f"write to {self}")
        if remove:
            self._retried(lambda: self._remove(remove), f"write to {self}")

    def download(self, path: str, revision: str | None, folder: Path) -> Path:
        """Downloads a file to its own path below `folder`."""
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        self._retried(
            lambda: self._api().download_bucket_files(self.name, [(path, target)], raise_on_missing_files=True),
            f"read {path} of {self}",
        )
        return target

    def _retried(self, call: Callable[[], T], what: str) -> T:
        return with_retries(lambda: _with_storage_errors(call), what, self.waits)

    def _list(self, folders: Sequence[str]) -> Listing:
        from huggingface_hub import BucketFile

        files: dict[str, Entry] = {}
        for folder in folders:
            for item in self._api().list_bucket_tree(self.name, folder, recursive=True):
                if isinstance(item, BucketFile):
                    files[item.path] = Entry(item.size, "", None, item.xet_hash)
        return Listing(None, files)

    def _add(self, files: Mapping[str, Content]) -> None:
        self._api().batch_bucket_files(self.name, add=[(content, path) for path, content in files.items()])

    def _remove(self, paths: Collection[str]) -> None:
        known = {info.path for info in self._api().get_bucket_paths_info(self.name, list(paths))}
        if existing := [path for path in paths if path in known]:
            self._api().batch_bucket_files(self.name, delete=existing)

    def _api(self) -> HfApi:
        from huggingface_hub import HfApi
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # public by its docs

        disable_progress_bars()
        return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=os.environ.get("HF_TOKEN") or False)


def _with_storage_errors(call: Callable[[], T]) -> T:
    """Calls; what the Xet storage raises, which is a plain exception, is worth a retry."""
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    try:
        return call()
    except (HTTPError, HubError, OSError, TypeError, AttributeError):
        raise
    except Exception as error:
        raise StorageUnavailable(str(error).partition("\n")[0]) from error
