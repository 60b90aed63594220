"""A consistent copy of a session directory while the session is training."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from rldsl.store import layout
from rldsl.store.append_only_ring import link
from rldsl.store.checkpoint import MANIFEST, TEMPORARY

APPENDED = (".jsonl", ".csv", ".txt")
"""Text files that grow by lines: an incomplete line at the end is left out of the copy."""
SYNCED = re.compile(
    r"[a-z0-9-]+\.(json|jsonl|csv|gin|txt|diff)"
    rf"|{layout.CHECKPOINTS}/[A-Za-z0-9_-]+(\.old)?/[^/\\\0.][^/\\\0]*\.(json|safetensors)"
    rf"|{layout.TENSORBOARD}/events\.[^/\\\0]+"
)
"""The files of a session that are copied. None is executable code, and no path can leave the session."""
NOT_SYNCED = frozenset({layout.ALIVE, layout.LOCK})
ATTEMPTS = 5


def is_synced(name: str) -> bool:
    """Whether a file, given by its path below the session directory, is part of a copy."""
    return name not in NOT_SYNCED and SYNCED.fullmatch(name) is not None


def snapshot(session: Path, stage: Path, unreadable: dict[str, str] | None = None) -> dict[str, Path]:
    """Copies a session to `stage`, where nothing changes the files; returns them by their paths in the session.

    Checkpoints are copied first: the metrics up to a checkpoint are written before it, so the copy has both. Given
    `unreadable`, files that cannot be read are left out, with the reason in it.
    """
    files = _link_checkpoints(session / layout.CHECKPOINTS, stage / layout.CHECKPOINTS)
    for path in sorted([*session.glob("*"), *(session / layout.TENSORBOARD).glob("*")]):
        name = path.relative_to(session).as_posix()
        if is_synced(name) and path.is_file() and not path.is_symlink():
            try:
                files[name] = _copy(path, stage / name)
            except OSError as error:
                if unreadable is None:
                    raise
                unreadable[name] = (error.strerror or str(error)).lower()
    return files


def _link_checkpoints(source: Path, target: Path) -> dict[str, Path]:
    """Hard-links all complete checkpoints; starts over if the newest was pruned in the meantime."""
    linked: dict[str, Path] = {}
    for _ in range(ATTEMPTS):
        shutil.rmtree(target, ignore_errors=True)
        names = sorted(path.name for path in source.glob("*") if not path.name.startswith(TEMPORARY))
        complete = [name for name in names if _link_checkpoint(source / name, target / name)]
        linked = {f"{layout.CHECKPOINTS}/{path.relative_to(target)}": path for path in target.glob("*/*")}
        if _newest(names) == _newest(complete):
            break
    return linked


def _newest(names: list[str]) -> str | None:
    return max((name for name in names if name.isdigit()), default=None)


def _link_checkpoint(source: Path, target: Path) -> bool:
    """Links the files of a checkpoint; returns False if it was pruned in the meantime."""
    try:
        files = json.loads((source / MANIFEST).read_bytes())["files"]
        target.mkdir(parents=True)
        for name in (MANIFEST, *files):
            if is_synced(f"{layout.CHECKPOINTS}/{target.name}/{name}"):
                link(source / name, target / name)
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def _copy(path: Path, target: Path) -> Path:
    data = path.read_bytes()
    if path.suffix in APPENDED:
        data = data[: data.rfind(b"\n") + 1]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target
