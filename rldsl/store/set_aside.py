"""Sessions that were set aside to be trained again: `seed-0` becomes `seed-0.old-1`, which no command counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rldsl.store.errors import writing
from rldsl.store.layout import ALIVE
from rldsl.store.session_dir import SessionDir

_NAME = re.compile(r"(seed-(?:0|[1-9][0-9]*))\.old-([1-9][0-9]*)")


def set_aside(directory: SessionDir) -> Path:
    """Renames the directory of a session that no process holds; returns the new path. `mv` brings it back."""
    with directory.claim():
        number = 1 + max((int(match[2]) for match in _older(directory.path)), default=0)
        goal = directory.path.with_name(f"{directory.path.name}.old-{number}")
        directory.journal.append("set_aside", to=goal.name)
        with writing(goal):
            directory.path.rename(goal)
        with suppress(OSError):
            (goal / ALIVE).unlink()
    return goal


def older_versions(directory: Path) -> list[Path]:
    """The directories of a session that were set aside, in order."""
    found = sorted(_older(directory), key=lambda match: int(match[2]))
    return [directory.with_name(match[0]) for match in found]


def all_set_aside(runs: Path) -> Iterator[tuple[Path, Path]]:
    """Every directory that was set aside, with the directory of the session that took its place."""
    for path in sorted(runs.glob("*/*/seed-*.old-*")):
        if (match := _NAME.fullmatch(path.name)) is not None:
            yield path, path.with_name(match[1])


def _older(directory: Path) -> list[re.Match[str]]:
    names = (path.name for path in directory.parent.glob(f"{directory.name}.old-*"))
    return [match for name in names if (match := _NAME.fullmatch(name)) is not None and match[1] == directory.name]
