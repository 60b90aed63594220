"""The frozen copy of the code: jobs run the code as it was when they were submitted.

`runs/.code/<hash>/` holds `project/`: the files that git tracks, the experiment file, the modules that it imports, and
what the launcher asks to include; and `lib/`: rldsl itself if it is not an installed package. Keys and credentials are
left out. Equal contents share one copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rldsl.spec.errors import PACKAGE, SpecError
from rldsl.store.errors import writing
from rldsl.store.files import PRIVATE, replace_text
from rldsl.store.secrets import offence
from rldsl.store.sources import source_files
from rldsl.store.worktree import FROZEN, frozen_text, project_root, read_worktree

CODE = ".code"
PROJECT = "project"
LIBRARY = "lib"
MOST_BYTES = 100_000_000
LINK_OUTSIDE = "is a symbolic link to a place outside of the project"


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
    left_out: tuple[str, ...] = ()
    """A sentence for each file that was not copied although git tracks it."""

    @classmethod
    def of_this_process(cls, folder: Path, file: Path) -> FrozenCode:
        """The copy that this process runs itself."""
        return cls(folder, file, Path.cwd(), tuple(os.environ.get("PYTHONPATH", "").split(os.pathsep)))


def freeze(file: Path, runs: Path, include: Sequence[str] = ()) -> FrozenCode:
    """Makes the copy for an experiment file, or finds one with equal contents. `include` are patterns of more files."""
    root = project_root(file)
    sources = source_files(file, root)
    listed = sorted({*_project(root, runs.resolve(), sources, include), *library()}, key=lambda entry: entry.goal)
    reasons = {entry: reason for entry in listed if (reason := _offence(entry, root)) is not None}
    _refuse_secrets(reasons, sources)
    files = [entry for entry in listed if entry not in reasons]
    _refuse_large(files, root)
    worktree = frozen_text(read_worktree(root, sources))
    folder = runs.resolve() / CODE / _digest(files, worktree)
    if not folder.is_dir():
        _copy(files, worktree, folder)
    frozen, cwd = frozen_path(folder, file, root), frozen_path(folder, Path.cwd(), root)
    left_out = tuple(f"{entry.source} {reason}: it is not copied to jobs" for entry, reason in reasons.items())
    return FrozenCode(folder, frozen, cwd if cwd.is_dir() else frozen.parent, python_path(folder, root), left_out)


def frozen_path(code: Path, path: Path, root: Path) -> Path:
    """The path of a file or directory inside the copy; the copied project itself for paths outside of the project."""
    path = path.resolve()
    return code / PROJECT / path.relative_to(root) if path.is_relative_to(root) else code / PROJECT


def python_path(code: Path, root: Path) -> tuple[str, ...]:
    """PYTHONPATH for jobs: as in this process, with directories of the project taken from the copy."""
    paths = [Path(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    moved = (frozen_path(code, one, root) if one.resolve().is_relative_to(root) else one.resolve() for one in paths)
    return (str(code / LIBRARY), *map(str, moved))


def _project(root: Path, runs: Path, sources: Sequence[Path], include: Sequence[str]) -> Iterator[CodeFile]:
    """Tracked files, the experiment with its modules, and files that were asked for; never those of the runs."""
    tracked = [root / os.fsdecode(name) for name in (_git(root, "ls-files", "-z") or b"").split(b"\0") if name]
    for path in {*tracked, *_included(root, include)}:
        inside = PACKAGE in path.parents or runs in path.parents
        if not inside and (path.is_symlink() or path.is_file()):
            yield CodeFile(path, f"{PROJECT}/{path.relative_to(root)}")
    yield from (CodeFile(path, f"{PROJECT}/{path.relative_to(root)}") for path in sources)


def _included(root: Path, include: Sequence[str]) -> Iterator[Path]:
    """The files that match patterns; a directory stands for everything in it."""
    for pattern in include:
        found = [path for path in root.glob(pattern) if ".git" not in path.parts]
        if not found:
            raise SpecError(f"launcher.include: nothing in {root} matches {pattern!r}")
        for path in found:
            inner = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
            yield from (one for one in inner if one.is_file() and "__pycache__" not in one.parts)


def _offence(entry: CodeFile, root: Path) -> str | None:
    """Why a file is not copied. A link within the project is copied as a link."""
    if not entry.source.is_symlink():
        return offence(entry.source) if entry.goal.startswith(PROJECT) else None
    relative = not os.path.isabs(os.readlink(entry.source))  # noqa: PTH115, PTH117
    return None if relative and entry.source.resolve().is_relative_to(root) else LINK_OUTSIDE


def _refuse_secrets(reasons: Mapping[CodeFile, str], sources: Collection[Path]) -> None:
    """A job cannot run without the experiment and its modules."""
    for entry, reason in reasons.items():
        if entry.source in sources:
            raise SpecError(f"{entry.source} {reason}: jobs need this file; pass a secret by its name in pass_env")


def library() -> Iterator[CodeFile]:
    """The files of rldsl itself, unless it is an installed package, which does not change under a running job."""
    if "site-packages" not in PACKAGE.parts:
        for path in PACKAGE.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield CodeFile(path, f"{LIBRARY}/rldsl/{path.relative_to(PACKAGE)}")


def _refuse_large(files: Iterable[CodeFile], root: Path) -> None:
    sizes = {file.goal: file.source.lstat().st_size for file in files}
    if sum(sizes.values()) > MOST_BYTES:
        largest = ", ".join(sorted(sizes, key=lambda name: -sizes[name])[:3])
        words = f"{sum(sizes.values()) / 1e6:.0f} MB in {root}, more than the {MOST_BYTES / 1e6:.0f} MB that jobs copy"
        raise SpecError(
            f"the code is {words}; the largest are {largest}: keep data out of the repository and of launcher.include"
        )


def _digest(files: Iterable[CodeFile], worktree: str) -> str:
    digest = hashlib.sha256(worktree.encode())
    for file in files:
        link = file.source.is_symlink()
        mode = 0 if link else file.source.stat().st_mode & 0o111
        data = os.fsencode(os.readlink(file.source)) if link else file.source.read_bytes()  # noqa: PTH115
        digest.update(f"{file.goal}\0{mode}\0{hashlib.sha256(data).hexdigest()}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def _copy(files: Iterable[CodeFile], worktree: str, goal: Path) -> None:
    """Copies to a temporary directory and renames it, so that an existing copy is always complete."""
    half = goal.with_name(f".{goal.name}.{os.getpid()}.tmp")
    with writing(goal):
        try:
            for file in files:
                _copy_file(file, half)
            (half / PROJECT).mkdir(parents=True, exist_ok=True)
            replace_text(half / PROJECT / FROZEN, worktree, durable=False, mode=PRIVATE)
            half.chmod(0o700)  # what is inside may be code that is nobody else's business
            half.rename(goal)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            if not goal.is_dir():  # otherwise another process made the same copy in the meantime
                raise


def _copy_file(file: CodeFile, folder: Path) -> None:
    target = folder / file.goal
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file.source, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(PRIVATE | (file.source.stat().st_mode & 0o100))


def _git(folder: Path, *arguments: str) -> bytes | None:
    command = ["git", "--no-optional-locks", "-C", os.fspath(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
