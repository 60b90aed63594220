"""Provenance: code, packages and machine of a session. Environment variables are never recorded."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.spec.json_text import parse_object
from rldsl.store import layout
from rldsl.store.code_version import CodeVersion
from rldsl.store.files import PRIVATE, replace_json, replace_text
from rldsl.store.processes import host_name
from rldsl.store.scrub import scrub_command, scrub_text
from rldsl.store.worktree import Worktree, read_worktree

SCHEMA = 1
SECTIONS = frozenset({"code", "packages", "hardware"})
"""Facts that are objects themselves."""
VOLATILE = frozenset({"command", "time", "pid"})  # differs between two runs of the same code on the same machine


class Provenance(NamedTuple):
    facts: dict[str, Any]
    diff: str  # uncommitted changes; empty for a clean worktree

    def with_code(self, version: CodeVersion | None) -> Provenance:
        """The provenance of a session that depends on this version of the code."""
        if version is None:
            return self
        return self._replace(facts={**self.facts, "code": {**self.facts.get("code", {}), **version.facts()}})


class Difference(NamedTuple):
    kind: str  # code, package, python or host
    name: str
    a: str | None
    b: str | None


def collect(command: Sequence[str], cwd: Path, sources: Sequence[Path] = ()) -> Provenance:
    """The provenance of this process. `sources` are user files that git may not track, such as the experiment file."""
    tree = read_worktree(cwd, sources)
    tree = tree._replace(diff=scrub_text(tree.diff))
    facts = {
        "schema": SCHEMA,
        "time": round(time.time(), 3),
        "pid": os.getpid(),
        "command": scrub_command(command),
        "cwd": str(cwd.resolve()),
        "code": _code(tree),
        "python": platform.python_version(),
        "packages": packages(),
        "platform": platform.platform(),
        "host": host_name(),
        "hardware": _hardware(),
    }
    return Provenance(facts, tree.diff)


def write_provenance(directory: Path, provenance: Provenance) -> Path | None:
    """Writes a new numbered file if the facts differ from the newest one; returns the new file."""
    number = 1
    newest: Path | None = None
    while (path := directory / layout.provenance_name(number)).exists():
        newest, number = path, number + 1
    if newest is not None and _lasting(read_provenance(newest)) == _lasting(provenance.facts):
        return None
    diff = directory / layout.diff_name(number)
    if provenance.diff:
        replace_text(diff, provenance.diff, mode=PRIVATE)
    else:
        diff.unlink(missing_ok=True)  # left by a process that was killed before it wrote its provenance
    replace_json(path, provenance.facts, mode=PRIVATE)
    return path


def read_provenance(path: Path) -> dict[str, Any]:
    """The facts in a file; empty if it cannot be read."""
    try:
        facts = parse_object(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return {name: value for name, value in facts.items() if name not in SECTIONS or isinstance(value, dict)}


def newest_provenance(directory: Path) -> dict[str, Any]:
    """The newest facts of a session."""
    number = 1
    while (directory / layout.provenance_name(number + 1)).exists():
        number += 1
    return read_provenance(directory / layout.provenance_name(number))


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """The differences between two sessions that may affect their results."""
    pairs = [
        *(("code", name, a.get("code", {}).get(name), b.get("code", {}).get(name)) for name in ("sha", "diff_sha256")),
        *_package_pairs(a.get("packages", {}), b.get("packages", {})),
        ("python", "python", a.get("python"), b.get("python")),
        ("host", "host", a.get("host"), b.get("host")),
    ]
    return [Difference(*pair) for pair in pairs if pair[2] != pair[3]]


def packages() -> dict[str, str]:
    """Versions of all installed distributions; if a name occurs twice, the one that would be imported."""
    from email import message_from_string
    from importlib.metadata import distributions

    found: dict[str, str] = {}
    for distribution in distributions():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        header = message_from_string(text.partition("\n\n")[0])  # without the description, which takes long to parse
        if header["Name"]:
            found.setdefault(header["Name"].lower(), header["Version"])
    return dict(sorted(found.items()))


def _package_pairs(a: Mapping[str, str], b: Mapping[str, str]) -> list[tuple[str, str, str | None, str | None]]:
    return [("package", name, a.get(name), b.get(name)) for name in sorted({*a, *b})]


def _lasting(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in VOLATILE}


def _code(tree: Worktree) -> dict[str, Any]:
    return {
        "sha": tree.sha,
        "branch": tree.branch,
        "root": tree.root and str(tree.root),
        "dirty": bool(tree.diff),
        "diff_sha256": hashlib.sha256(tree.diff.encode()).hexdigest() if tree.diff else None,
        "rldsl": _rldsl_version(),
    }


def _rldsl_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rldsl")
    except PackageNotFoundError:
        return None


def _hardware() -> dict[str, Any]:
    import psutil  # type: ignore[import-untyped]

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "gpus": _gpu_names(),
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _gpu_names() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return answer.stdout.split("\n")[:-1]
