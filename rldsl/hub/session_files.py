"""The files of a session that are shared: everything but what is of this machine only and older checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from rldsl.hub.snapshot import is_synced
from rldsl.store import layout


def shared(names: Iterable[str], best_only: bool = False) -> set[str]:
    """Those of a session's files that are shared: of the checkpoints named by their frame the newest, or none."""
    found = {name for name in names if is_synced(name)}
    newest = max((frame for name in found if (frame := checkpoint_of(name)).isdigit()), default="")
    kept = "" if best_only else newest
    return {name for name in found if not checkpoint_of(name)[:1].isdigit() or checkpoint_of(name) == kept}


def checkpoint_of(name: str) -> str:
    """The name of the checkpoint that a file belongs to: `best`, or a frame; empty for other files."""
    folder, _, rest = name.partition("/")
    return rest.partition("/")[0] if folder == layout.CHECKPOINTS else ""


def files_on_disk(session: Path) -> dict[str, Path]:
    """Every file of a session's directory that may be shared, by its name."""
    folders = [session, session / layout.TENSORBOARD, *(session / layout.CHECKPOINTS).glob("*")]
    paths = [path for folder in folders if folder.is_dir() and not folder.is_symlink() for path in folder.iterdir()]
    names = {path.relative_to(session).as_posix(): path for path in paths if path.is_file() and not path.is_symlink()}
    return {name: path for name, path in names.items() if is_synced(name)}


def signature(session: Path, best_only: bool) -> str:
    """Changes when any of the shared files changes: a digest of their names, sizes and modification times."""
    files = files_on_disk(session)
    facts = [(name, (status := files[name].stat()).st_size, status.st_mtime_ns) for name in shared(files, best_only)]
    return hashlib.sha256(repr(sorted(facts)).encode()).hexdigest()
