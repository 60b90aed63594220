"""Libraries of compiled steps, kept on disk for the processes that come later.

They are code, so they lie in the user's own cache, where nobody else can write, and never in a run directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, fx

from rldsl.agents.products import code_digest

Place = tuple[int, str | int | None]
"""Where an input stands: the number of an argument of the step, and its key where that is a dict."""

KEPT_DAYS = 30
"""A library that no process used for so long is deleted."""


@dataclass(frozen=True)
class Library:
    """Machine code, and where its inputs are found."""

    path: str
    places: list[Place]


class Libraries:
    """Machine code by the digest of the graph that it computes; and that digest by what the graph comes from, so that
    it need not be traced to be known. Where the cache cannot be had, nothing is found and nothing kept."""

    def __init__(self) -> None:
        self.folder = _folder()

    def find(self, key: str) -> Library | None:
        """What `name` noted."""
        try:
            note = self.folder / f"{key}.json"  # type: ignore[operator]
            noted = json.loads(note.read_text())
            library = self.path(noted["graph"])
            os.utime(note)
            return None if library is None else Library(library, [(at, key) for at, key in noted["places"]])
        except (OSError, TypeError, ValueError, KeyError):
            return None

    def name(self, key: str, graph: str, places: Sequence[Place]) -> None:
        """From now on, `find` by this key gives the library of this graph."""
        if self.folder:
            self._write(f"{key}.json", json.dumps({"graph": graph, "places": places}).encode())

    def path(self, graph: str) -> str | None:
        """The library of a graph, which is marked as used."""
        path = self.folder / f"{graph}.so" if self.folder else None
        try:
            os.utime(path)  # type: ignore[arg-type]
        except (OSError, TypeError):
            return None
        return str(path)

    def keep(self, graph: str, built: str) -> str | None:
        """Copies the library of a graph; deletes those that have not been used for long."""
        if self.folder is None:
            return None
        self._clear()
        return self._write(f"{graph}.so", Path(built).read_bytes())

    def _write(self, name: str, content: bytes) -> str | None:
        """Whole or not at all, also where two processes write the same."""
        assert self.folder
        own = self.folder / f"{name}.{os.getpid()}"
        try:
            own.write_bytes(content)
            own.replace(self.folder / name)
        except OSError:
            own.unlink(missing_ok=True)
            return None
        return str(self.folder / name)

    def _clear(self) -> None:
        assert self.folder
        oldest = time.time() - KEPT_DAYS * 86_400
        for file in self.folder.iterdir():
            try:
                if file.stat().st_mtime < oldest:
                    file.unlink()
            except OSError:
                continue


def digest_of(*parts: str) -> str:
    """Of what code comes from: these words, the package's own code, torch and the machine."""
    return _digest([_sources(), _machine(), *parts])


def graph_digest(graph: fx.GraphModule, inputs: Sequence[Tensor]) -> str:
    """Of what a lowered graph computes, on which machine."""
    kinds = [f"{one.dtype} {tuple(one.shape)} {one.stride()}" for one in inputs]
    return _digest([_machine(), graph.code, *kinds, *_constants(graph)])


def _constants(graph: fx.GraphModule) -> Iterator[str]:
    """The numbers that a graph names and does not write out."""
    for node in graph.graph.find_nodes(op="get_attr"):
        value = getattr(graph, str(node.target))
        yield f"{node.target} {value.dtype} {value.tolist()}" if isinstance(value, Tensor) else value.code


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@cache
def _sources() -> str:
    """Any of the package's modules may take part in a step."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _machine() -> str:
    """Libraries use every instruction that the processor has, and as many threads as torch had."""
    return f"{torch.__version__} {torch.get_num_threads()} {_processor()} {code_digest()}"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
    told = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    return " ".join([platform.machine(), *sorted(told)])


def _folder() -> Path | None:
    """Nobody but the user may write there: what lies there is run."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rldsl" / "compiled"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):
        return None
    return folder if found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None
