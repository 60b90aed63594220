"""The frozen copy of the code: jobs run the code as it was when they were submitted.

`runs/.code/<hash>/` holds `project/`, the repository of the experiment file (without one, its directory), and `lib/`,
rldsl itself if it is not an installed package. Equal contents share one copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from rldsl.spec.errors import PACKAGE, SpecError
from rldsl.store.errors import writing
from rldsl.store.worktree import FROZEN, frozen_text, read_worktree

CODE = ".code"
PROJECT = "project"
LIBRARY = "lib"
MOST_BYTES = 100_000_000
SKIPPED = frozenset({"__pycache__", "node_modules", "runs", "results", "wandb", "mlruns"})
"""Directories that are not copied if there is no .gitignore."""


class CodeFile(NamedTuple):
    """A file to copy: its path, and its path inside the copy."""

    source: Path
    goal: str


class FrozenCode(NamedTuple):
    """A frozen copy of the code, and what a process that runs it needs to know."""

    folder: Path
    file: Path
    """The experiment file in the copy."""
    cwd: Path
    """The working directory in the copy."""
    path: tuple[str, ...]
    """PYTHONPATH, with directories of the project taken from the copy."""

    @classmethod
    def of_this_process(cls, folder: Path, file: Path) -> FrozenCode:
        """The copy that this process runs itself."""
        return cls(folder, file, Path.cwd(), tuple(os.environ.get("PYTHONPATH", "").split(os.pathsep)))


def freeze(file: Path, runs: Path) -> FrozenCode:
    """Makes the copy for an experiment file; see `freeze_code`."""
    folder, root = freeze_code(file, runs), project_root(file)
    frozen, cwd = frozen_path(folder, file, root), frozen_path(folder, Path.cwd(), root)
    return FrozenCode(folder, frozen, cwd if cwd.is_dir() else frozen.parent, python_path(folder, root))


def freeze_code(file: Path, runs: Path) -> Path:
    """Makes the copy for an experiment file; reuses an existing one with equal contents."""
    root = project_root(file)
    experiment = CodeFile(file.resolve(), str(frozen_path(Path(), file, root)))  # even if git ignores it
    files = sorted({experiment, *_project(root, runs.resolve()), *_library()}, key=lambda entry: entry.goal)
    _refuse_large(files, root)
    worktree = frozen_text(read_worktree(root, [file.resolve()]))
    goal = runs.resolve() / CODE / _digest(files, worktree)
    if not goal.is_dir():
        _copy(files, worktree, goal)
    return goal


def project_root(file: Path) -> Path:
    """The root of the repository that contains a file; without one, the directory of the file."""
    folder = file.resolve().parent
    top = _git(folder, "rev-parse", "--show-toplevel")
    return Path(top.decode().strip()) if top else folder


def frozen_path(code: Path, path: Path, root: Path) -> Path:
    """The path of a file or directory inside the copy; the copied project itself for paths outside of the project."""
    path = path.resolve()
    return code / PROJECT / path.relative_to(root) if path.is_relative_to(root) else code / PROJECT


def python_path(code: Path, root: Path) -> tuple[str, ...]:
    """PYTHONPATH for jobs: as in this process, with directories of the project taken from the copy."""
    paths = [Path(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    moved = (frozen_path(code, one, root) if one.resolve().is_relative_to(root) else one.resolve() for one in paths)
    return (str(code / LIBRARY), *map(str, moved))


def _project(root: Path, runs: Path) -> Iterator[CodeFile]:
    for path in _listed(root) or _walked(root):
        inside = PACKAGE in path.parents or runs in path.parents
        if not inside and path.is_file():
            yield CodeFile(path, f"{PROJECT}/{path.relative_to(root)}")


def _library() -> Iterator[CodeFile]:
    """The files of rldsl itself, unless it is an installed package, which does not change under a running job."""
    if "site-packages" not in PACKAGE.parts:
        for path in PACKAGE.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield CodeFile(path, f"{LIBRARY}/rldsl/{path.relative_to(PACKAGE)}")


def _listed(root: Path) -> list[Path] | None:
    """Files that git tracks, and untracked ones that it does not ignore; hidden files only if they are tracked."""
    tracked = _git(root, "ls-files", "-z")
    others = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked is None or others is None:
        return None
    visible = (name for name in _names(others) if not any(part.startswith(".") for part in Path(name).parts))
    return [root / name for name in (*_names(tracked), *visible)]


def _walked(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if _is_code(Path(folder, name))]
        yield from (Path(folder, name) for name in files if not name.startswith("."))


def _is_code(folder: Path) -> bool:
    return not folder.name.startswith(".") and folder.name not in SKIPPED and not (folder / "pyvenv.cfg").exists()


def _names(answer: bytes) -> list[str]:
    return [os.fsdecode(name) for name in answer.split(b"\0") if name]


def _refuse_large(files: Iterable[CodeFile], root: Path) -> None:
    sizes = {file.goal: file.source.stat().st_size for file in files}
    if sum(sizes.values()) > MOST_BYTES:
        largest = ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:3])
        words = f"{sum(sizes.values()) / 1e6:.0f} MB in {root}, more than the {MOST_BYTES / 1e6:.0f} MB that jobs copy"
        raise SpecError(f"the code is {words}; the largest are {largest}: list what is no code in .gitignore")


def _digest(files: Iterable[CodeFile], worktree: str) -> str:
    digest = hashlib.sha256(worktree.encode())
    for file in files:
        mode = file.source.stat().st_mode & 0o111
        contents = hashlib.sha256(file.source.read_bytes()).hexdigest()
        digest.update(f"{file.goal}\0{mode}\0{contents}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def _copy(files: Iterable[CodeFile], worktree: str, goal: Path) -> None:
    """Copies to a temporary directory and renames it, so that an existing copy is always complete."""
    half = goal.with_name(f".{goal.name}.{os.getpid()}.tmp")
    with writing(goal):
        for file in files:
            (half / file.goal).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.source, half / file.goal)
        (half / PROJECT).mkdir(parents=True, exist_ok=True)
        (half / PROJECT / FROZEN).write_text(worktree)
        try:
            half.rename(goal)
        except OSError:
            shutil.rmtree(half)
            if not goal.is_dir():  # otherwise another process made the same copy in the meantime
                raise


def _git(folder: Path, *arguments: str) -> bytes | None:
    command = ["git", "--no-optional-locks", "-C", os.fspath(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
