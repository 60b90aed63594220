"""The state of the code: git commit, branch, and a diff of uncommitted changes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rldsl.store.secrets import secret_name

FROZEN = ".worktree.json"
"""File in a frozen copy of the code that describes the worktree it was copied from."""
MOST_BYTES = 1_000_000
TIMEOUT = 10.0


class Worktree(NamedTuple):
    root: Path | None = None  # None outside of a repository, or without git
    sha: str | None = None
    branch: str | None = None
    diff: str = ""


def read_worktree(cwd: Path, sources: Sequence[Path] = ()) -> Worktree:
    """The worktree around `cwd`. Untracked `sources`, and those outside the repository, are added to the diff.

    `sources` are the experiment file and the modules that it imports. No other untracked file is in the diff, and no
    file that has the name of a secret.
    """
    if (frozen := _frozen(cwd.resolve())) is not None:
        return frozen
    top = _git(cwd, "rev-parse", "--show-toplevel")
    if top is None:
        return Worktree(diff=_capped(_as_new(path, path) for path in sources))
    root = Path(top.strip())
    sha, branch = _git(root, "rev-parse", "--verify", "HEAD"), _git(root, "symbolic-ref", "--short", "HEAD")
    return Worktree(root, sha and sha.strip(), branch and branch.strip(), _diff(root, sha is not None, sources))


def project_root(file: Path) -> Path:
    """The root of the repository that contains a file; without one, the directory of the file."""
    folder = file.resolve().parent
    top = _git(folder, "rev-parse", "--show-toplevel")
    return Path(top.strip()) if top else folder


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
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-relative")
    changed = (_git(root, "diff", base, "--name-only", "-z", "--no-relative") or "").split("\0")
    hidden = [name for name in changed if name and secret_name(Path(name))]
    excluded = [f":(top,exclude,literal){name}" for name in hidden]
    tracked = _git(root, "diff", base, *options, "--", ":(top)", *excluded) or ""
    notes = [f"# {name} is left out: it has the name of a file with keys or credentials\n" for name in hidden]
    return _capped([tracked, *notes, *(_as_new(path, _inside(root, path)) for path in _untracked(root, sources))])


def _untracked(root: Path, sources: Sequence[Path]) -> list[Path]:
    wanted = {path.resolve() for path in sources}
    return sorted(
        path
        for path in wanted
        if not path.is_relative_to(root.resolve()) or not _git(root, "ls-files", "--", str(path))
    )


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
