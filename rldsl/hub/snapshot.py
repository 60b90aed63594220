"""The files of a session as they are at one moment, while it goes on: what a copy of it elsewhere is made of."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from rldsl.store import layout
from rldsl.store.append_only_ring import link
from rldsl.store.checkpoint import MANIFEST, TEMPORARY

APPENDED = (".jsonl", ".csv", ".txt")
"""Text that grows by whole lines: half a line at the end is not yet part of it."""
TRAVELS = re.compile(
    r"[a-z0-9-]+\.(json|jsonl|csv|gin|txt|diff)"
    rf"|{layout.CHECKPOINTS}/[A-Za-z0-9_-]+(\.old)?/[^/\\\0.][^/\\\0]*\.(json|safetensors)"
    rf"|{layout.TENSORBOARD}/events\.[^/\\\0]+"
)
"""What a session is made of, none of which runs as code, and no path of which leads out of it; all else stays."""
STAYS = frozenset({layout.ALIVE, layout.LOCK})
TRIES = 5


def travels(name: str) -> bool:
    """Whether a file of a session, by its path in it, is part of a copy."""
    return name not in STAYS and TRAVELS.fullmatch(name) is not None


def snapshot(session: Path, stage: Path) -> dict[str, Path]:
    """The files by their paths in the session, under `stage`, where nothing changes or removes them any more.

    Checkpoints come first: the metrics that they stand on were written before them, so that a copy has both.
    """
    found = _checkpoints(session / layout.CHECKPOINTS, stage / layout.CHECKPOINTS)
    for path in sorted([*session.glob("*"), *(session / layout.TENSORBOARD).glob("*")]):
        name = path.relative_to(session).as_posix()
        if travels(name) and path.is_file():
            found[name] = _copied(path, stage / name)
    return found


def _checkpoints(source: Path, target: Path) -> dict[str, Path]:
    """All that are in place, as links. Where the newest vanished meanwhile, others came: all are looked for again."""
    linked: dict[str, Path] = {}
    for _ in range(TRIES):
        shutil.rmtree(target, ignore_errors=True)
        names = sorted(path.name for path in source.glob("*") if not path.name.startswith(TEMPORARY))
        whole = [name for name in names if _linked(source / name, target / name)]
        linked = {f"{layout.CHECKPOINTS}/{path.relative_to(target)}": path for path in target.glob("*/*")}
        if _newest(names) == _newest(whole):
            break
    return linked


def _newest(names: list[str]) -> str | None:
    return max((name for name in names if name.isdigit()), default=None)


def _linked(source: Path, target: Path) -> bool:
    """Whether all of a checkpoint could be linked: it may be on its way out."""
    try:
        files = json.loads((source / MANIFEST).read_bytes())["files"]
        target.mkdir(parents=True)
        for name in (MANIFEST, *files):
            if travels(f"{layout.CHECKPOINTS}/{target.name}/{name}"):
                link(source / name, target / name)
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def _copied(path: Path, target: Path) -> Path:
    data = path.read_bytes()
    if path.suffix in APPENDED:
        data = data[: data.rfind(b"\n") + 1]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target
