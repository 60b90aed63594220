"""The differences between the code of two sessions, or of a session and the present code, as text."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rldsl.store.code_version import CodeVersion
from rldsl.store.kept_sources import read_kept, recorded_files
from rldsl.store.provenance import newest_provenance

CONTEXT = 3


@dataclass(frozen=True)
class Code:
    """The code of a session or of an experiment file: its files with their digests, and where texts are kept."""

    label: str
    facts: Mapping[str, Any]
    """`code` of a provenance."""
    runs: Path
    present: CodeVersion | None = None

    @classmethod
    def of_session(cls, label: str, directory: Path) -> Code:
        """The code of the last attempt of a session."""
        return cls(label, newest_provenance(directory).get("code") or {}, directory.resolve().parents[2])

    @property
    def files(self) -> dict[str, tuple[str, str]]:
        return recorded_files(self.facts)

    def text(self, name: str) -> str | None:
        """The text of a file; empty if the code has no such file, None if the text is not known any more."""
        if self.present is not None:
            return self.present.files[name].source.text if name in self.present.files else ""
        if name not in self.files:
            return ""
        kept = read_kept(self.runs, self.files[name][1])
        return self._committed(name) if kept is None else kept

    def _committed(self, name: str) -> str | None:
        """The text of a module in the commit that the session recorded, if there were no changes to it."""
        root, sha = self.facts.get("root"), self.facts.get("sha")
        if not root or not sha or self.facts.get("dirty"):
            return None
        path = name if "/" in name or name.endswith(".py") else f"{name.replace('.', '/')}.py"
        return _git(Path(root), "show", f"{sha}:{path}")


@dataclass(frozen=True)
class FileDifference:
    """A file that differs, and the unified diff of its two texts; None if a text is not known."""

    name: str
    diff: str | None


def code_differences(a: Code, b: Code) -> list[FileDifference]:
    """The files in which what counts differs; the user's own first. For sessions without digests, what git says."""
    if not a.files or not b.files:
        return _by_commit(a, b)
    names = [name for name in {**a.files, **b.files} if a.files.get(name, ("",))[0] != b.files.get(name, ("",))[0]]
    names.sort(key=lambda name: (name.startswith("rldsl."), name))
    return [FileDifference(name, _unified(name, a, b)) for name in names]


def _unified(name: str, a: Code, b: Code) -> str | None:
    before, after = a.text(name), b.text(name)
    if before is None or after is None:
        return None
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{name} ({a.label})", f"{name} ({b.label})", lineterm="", n=CONTEXT
    )
    return "\n".join(lines)


def _by_commit(a: Code, b: Code) -> list[FileDifference]:
    """The differences between two commits of one repository."""
    root, shas = a.facts.get("root"), (a.facts.get("sha"), b.facts.get("sha"))
    if not root or not all(shas) or shas[0] == shas[1]:
        return []
    names = _git(Path(root), "diff", "--name-only", str(shas[0]), str(shas[1]), "--", "*.py")
    found = (names or "").splitlines()
    return [
        FileDifference(name, _git(Path(root), "diff", str(shas[0]), str(shas[1]), "--", name) or None) for name in found
    ]


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.decode(errors="replace")
