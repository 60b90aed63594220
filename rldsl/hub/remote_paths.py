"""Paths of files in a repository, which anybody may have written: which of them may become files in a run directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from rldsl.hub.snapshot import is_synced
from rldsl.store import layout

DEPTH = 3
"""The directory of a session: `<env>/<agent>-<trial>/seed-<n>`."""
PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
MOST_BYTES = 255
"""Of a name; the limit of the usual filesystems."""


def session_of(path: str) -> str | None:
    """The directory of the session that a file belongs to; None if it is no file of a session."""
    parts = path.split("/")
    directory = parts[:DEPTH]
    named = len(parts) > DEPTH and layout.trial_of(parts[1]) and layout.seed_of(parts[2]) is not None
    return "/".join(directory) if named and all(map(PART.fullmatch, directory)) else None


def refusal(path: str) -> str | None:
    """Why a path must not become a file below a run directory; None if it may."""
    if "\0" in path:
        return "it contains NUL"
    if not path.isascii() and path.encode(errors="replace") != path.encode(errors="surrogatepass"):
        return "it is not valid Unicode"
    parts = PurePosixPath(path).parts
    if path.startswith("/") or "\\" in path or re.match(r"[A-Za-z]:", path):
        return "it is an absolute path"
    if ".." in parts or "." in path.split("/") or "" in path.split("/"):
        return "it leaves its directory"
    if any(len(part.encode()) > MOST_BYTES for part in parts):
        return f"it has a name of more than {MOST_BYTES} bytes"
    session = session_of(path)
    if session is None or not is_synced(path.removeprefix(f"{session}/")):
        return "it is no file of a session"
    return None


def sort_out(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """The paths that may become files, and a sentence for each other one, including those that differ only in case."""
    accepted, refused, seen = [], [], dict[str, str]()
    for path in sorted(paths):
        clash = next((other for part in _beginnings(path) if (other := seen.get(part.casefold(), part)) != part), None)
        reason = refusal(path) or (clash and f"it differs from {printable(clash)} only in case")
        if reason:
            refused.append(f"refused {printable(path)}: {reason}")
        else:
            accepted.append(path)
            seen |= {part.casefold(): part for part in _beginnings(path)}
    return accepted, refused


def leaves(root: Path, path: str) -> bool:
    """Whether a symbolic link in a directory leads a path below it to somewhere else."""
    target = root / path
    return (root.resolve() / path) != target.parent.resolve() / target.name or target.is_symlink()


def printable(path: str) -> str:
    """A path as it can be shown in one line of a terminal."""
    text = path.encode("unicode_escape").decode()
    return text if len(text) <= 100 else f"{text[:97]}..."


def _beginnings(path: str) -> list[str]:
    """`a`, `a/b` and `a/b/c` of `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
