"""Shared libraries of compiled steps, kept on disk for later processes.

They are executable code. They are in a directory of the user's own that nobody else can enter, never in a run
directory, and are loaded only if they belong to the user and have the checksum that was written when they were built.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, fx

from rldsl.compile.kernels import source_digest

Place = tuple[int, str | int | None]
"""Where an input of a step is: the number of the argument, and the key in it if that is a dict."""

KEPT_DAYS = 30
"""Libraries that were not used for this long are deleted."""
BUILD = "build"
"""The directory, in that of the cache, in which torch's compiler builds."""
LOCK_SECONDS = 600.0
"""After this long, another process that builds the same library is not waited for any more."""


@dataclass(frozen=True)
class CachedStep:
    """A library, where the inputs of its step are, and the kernels that it contains."""

    path: str
    places: list[Place]
    kernels: str


class Cache:
    """Libraries by the digest of the graph that they compute, and that digest by what determines the graph, so that it
    can be found without tracing. If the directory cannot be used, nothing is found and nothing is stored."""

    def __init__(self) -> None:
        self.folder = _folder()

    def find(self, key: str) -> CachedStep | None:
        """What `name` recorded."""
        if self.folder is None:
            return None
        record = self.folder / f"{key}.json"
        try:
            data = json.loads(record.read_text())
            path = self.path(data["graph"])
            os.utime(record)
            places = [(argument, name) for argument, name in data["places"]]
            return None if path is None else CachedStep(path, places, str(data["kernels"]))
        except (OSError, TypeError, ValueError, KeyError):
            return None

    def name(self, key: str, digest: str, places: Sequence[Place], kernels: str) -> None:
        """Records the library of a graph under another key."""
        content = {"graph": digest, "places": places, "kernels": kernels}
        self._write(f"{key}.json", json.dumps(content).encode())

    def path(self, digest: str) -> str | None:
        """The library of a graph; it is marked as used."""
        if self.folder is None:
            return None
        path, checksum = self.folder / f"{digest}.so", self.folder / f"{digest}.sha256"
        try:
            if path.stat().st_uid != os.getuid() or _sha256(path) != checksum.read_text():
                return None
            os.utime(path)
            os.utime(checksum)
        except (OSError, UnicodeDecodeError):
            return None
        return str(path)

    def store(self, digest: str, library: str) -> str | None:
        """Copies the library of a graph into the cache, and deletes libraries that were not used for long."""
        self._delete_old()
        content = Path(library).read_bytes()
        stored = self._write(f"{digest}.so", content)
        return stored and self._write(f"{digest}.sha256", hashlib.sha256(content).hexdigest().encode()) and stored

    def build_directory(self) -> Path | None:
        """A directory for what torch's compiler builds and loads on its way to a library."""
        return None if self.folder is None else private_directory(self.folder / BUILD)

    @contextmanager
    def lock(self, digest: str) -> Iterator[None]:
        """Waits while another process builds this library, but not forever, and not where files cannot be locked."""
        if self.folder is None:
            yield
            return
        give_up = time.monotonic() + LOCK_SECONDS
        try:
            file = (self.folder / f"{digest}.lock").open("w")
        except OSError:
            yield
            return
        with file:
            while time.monotonic() < give_up:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.1)
                except OSError:
                    break
            yield

    def _write(self, name: str, content: bytes) -> str | None:
        """Writes the whole file or nothing, also if two processes write the same."""
        if self.folder is None:
            return None
        temporary = self.folder / f"{name}.{os.getpid()}"
        try:
            temporary.write_bytes(content)
            temporary.replace(self.folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            return None
        return str(self.folder / name)

    def _delete_old(self) -> None:
        oldest = time.time() - KEPT_DAYS * 86_400
        for file in self.folder.rglob("*") if self.folder else ():
            try:
                if file.stat().st_mtime < oldest and not file.is_dir():
                    file.unlink()
            except OSError:
                continue


def digest_of(*parts: str) -> str:
    """A digest of some words, the package's code, torch and the machine."""
    return _digest([_package(), _machine(), *parts])


def graph_digest(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> str:
    """A digest of what a lowered graph computes, and on which machine."""
    kinds = [f"{one.dtype} {tuple(one.shape)} {one.stride()}" for one in inputs]
    return _digest([_machine(), graph.code, *kinds, *_constants(graph)])


def _constants(graph: fx.GraphModule) -> Iterator[str]:
    """The values that the code of a graph only names."""
    for node in graph.graph.find_nodes(op="get_attr"):
        value = getattr(graph, str(node.target))
        yield f"{node.target} {value.dtype} {value.tolist()}" if isinstance(value, Tensor) else value.code


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _package() -> str:
    """Any module of the package may take part in a step."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _machine() -> str:
    """Libraries use the instructions of this processor, and the number of threads at the time they were built."""
    return f"{torch.__version__} {torch.get_num_threads()} {_processor()} {source_digest()}"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
    features = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    return " ".join([platform.machine(), *sorted(features)])


def _folder() -> Path | None:
    """The cache directory, if nobody but the user can write there."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rldsl" / "compiled"
    except RuntimeError:  # there is no home directory
        return None
    return private_directory(folder)


def private_directory(folder: Path) -> Path | None:
    """Creates a directory that only the user can enter; None if that is not possible, or if others can write there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        folder.chmod(0o700)
    except OSError:
        return None
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
