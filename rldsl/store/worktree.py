"""The state of the code: git commit, branch, and a diff of uncommitted changes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

FROZEN = ".worktree.json"
"""File in a frozen copy of the code that describes the worktree it was copied from."""
SOURCE_SUFFIXES = frozenset({".py", ".pyi", ".gin", ".toml", ".cfg", ".yaml", ".yml", ".sh"})
MOST_BYTES = 1_000_000
TIMEOUT = 10.0


class Worktree(NamedTuple):
    root: Path | None = None  # None outside of a repository, or without git
    sha: str | None = None
    branch: str | None = None
    diff: str = ""


def read_worktree(cwd: Path, sources: Sequence[Path] = ()) -> Worktree:
    """The worktree around `cwd`. Untracked `sources`, and those outside the repository, are added to the diff."""
    if (frozen := _frozen(cwd.resolve())) is not None:
        return frozen
    top = _git(cwd, "rev-parse", "--show-toplevel")
    if top is None:
        return Worktree(diff=_capped(_as_new(path, path) for path in sources))
    root = Path(top.strip())
    sha, branch = _git(root, "rev-parse", "--verify", "HEAD"), _git(root, "symbolic-ref", "--short", "HEAD")
    return Worktree(root, sha and sha.strip(), branch and branch.strip(), _diff(root, sha is not None, sources))


def frozen_text(tree: Worktree) -> str:
    """The content of the file `FROZEN`."""
    return json.dumps({**tree._asdict(), "root": tree.root and str(tree.root)})


def _frozen(cwd: Path) -> Worktree | None:
    """The original worktree of a frozen copy around `cwd`; None outside a frozen copy."""
    for folder in (cwd, *cwd.parents):
        try:
            facts = json.loads((folder / FROZEN).read_text())
            return Worktree(**{**facts, "root": facts["root"] and Path(facts["root"])})
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return None


def _diff(root: Path, has_commit: bool, sources: Sequence[Path]) -> str:
    base = "HEAD" if has_commit else "--cached"
    tracked = _git(root, "diff", base, "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative") or ""
    return _capped([tracked, *(_as_new(path, _inside(root, path)) for path in _untracked(root, sources))])


def _untracked(root: Path, sources: Sequence[Path]) -> list[Path]:
    wanted = {path.resolve() for path in sources}
    listed = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or ""
    others = [root / name for name in listed.split("\0") if name]
    found = {path for path in others if path.suffix in SOURCE_SUFFIXES or path.resolve() in wanted}
    for path in wanted - {path.resolve() for path in found}:
        if not path.is_relative_to(root.resolve()) or not _git(root, "ls-files", "--", str(path)):
            found.add(path)
    return sorted(found)


def _inside(root: Path, path: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def _as_new(path: Path, name: Path) -> str:
    """A diff that creates the file."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8", "replace")
    except OSError as error:
        return f"# {name} could not be read: {error.strerror}\n"
    header = f"diff --git a/{name} b/{name}\nnew file mode 100644\n"
    return header + _added(text, name) if text else header


def _added(text: str, name: Path) -> str:
    *lines, rest = text.split("\n")
    lines, ending = ([*lines, rest], "\\ No newline at end of file\n") if rest else (lines, "")
    body = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n{body}{ending}"


def _capped(parts: Iterable[str]) -> str:
    """The concatenated parts, truncated at a line break with a note if they are too long."""
    whole = ""
    for part in parts:
        whole += part
        if len(whole) > MOST_BYTES:
            kept = whole[:MOST_BYTES].rpartition("\n")[0]
            return f"{kept}\n# cut here: the diff is longer than {MOST_BYTES} characters\n"
    return whole


def _git(directory: Path, *arguments: str) -> str | None:
    """The output of git; None if it fails, hangs or is not installed."""
    command = ["git", "--no-optional-locks", "-C", os.fspath(directory), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.decode("utf-8", "replace")
