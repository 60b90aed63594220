"""Checkpoints that are written to the disk of a node first: they are copied to the run directory in the background.

A checkpoint counts once it is in the run directory, which alone is read when a session is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from rldsl.store.append_only_ring import link
from rldsl.store.checkpoint import MANIFEST, put_checkpoint
from rldsl.store.errors import writing
from rldsl.store.files import replace_bytes

VARIABLE = "RLDSL_SCRATCH"
"""The environment variable with a directory on the disk of a node, for the process of a job."""


def copy_checkpoint(source: Path, directory: Path, verify: Callable[[], None] = lambda: None) -> Path:
    """Copies a checkpoint durably to other checkpoints, with the guarantees of `save_checkpoint`.

    Files that checkpoints there have already, such as segments of replay buffers, are linked.
    """
    with writing(directory / source.name):
        manifest = (source / MANIFEST).read_bytes()
        known = _known_files(directory)

        def fill(temporary: Path) -> None:
            for name, fingerprint in json.loads(manifest)["files"].items():
                link(known.get(fingerprint["sha256"], source / name), temporary / name)
            replace_bytes(temporary / MANIFEST, manifest)

        return put_checkpoint(directory, source.name, fill, verify)


def _known_files(directory: Path) -> dict[str, Path]:
    """The files of the checkpoints in a directory, by their digests."""
    known = {}
    for path in directory.glob(f"*/{MANIFEST}"):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            for name, fingerprint in json.loads(path.read_bytes())["files"].items():
                file = path.with_name(name)
                if file.stat().st_size == fingerprint["size"]:
                    known[fingerprint["sha256"]] = file
    return known


class BackgroundCopies:
    """Copies the checkpoints of one session, in the order in which they were written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._thread = ThreadPoolExecutor(1, "copies")
        self._pending: list[Future[Path]] = []

    @property
    def finished(self) -> bool:
        """Whether nothing is being copied; `wait` raises what went wrong."""
        return all(one.done() for one in self._pending)

    def start(self, checkpoint: Path, verify: Callable[[], None]) -> None:
        """Begins to copy a checkpoint, which must not change until `wait` has returned."""
        self._pending.append(self._thread.submit(copy_checkpoint, checkpoint, self.directory, verify))

    def wait(self) -> None:
        """Returns when everything is copied; raises the first error."""
        pending, self._pending = self._pending, []
        for one in pending:
            one.result()

    def close(self) -> None:
        self._thread.shutdown()
