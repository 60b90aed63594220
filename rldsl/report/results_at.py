"""The results of a folder as they were at a git commit."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from rldsl.report.result import Result, read_result, result_files
from rldsl.store.errors import StoreError

TIMEOUT = 60.0


def results_at(commit: str, path: Path) -> list[Result]:
    """The results in a folder, in one family of it, or in one file, at a commit."""
    sha = commit_sha(commit, path)
    archive = _git(path, "archive", "--format=tar", sha, "--", path.name or ".")
    if archive is None:
        raise StoreError(f"{path} does not exist at {commit}")
    with TemporaryDirectory() as temporary:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(temporary, filter="data")
        return results_in(Path(temporary) / path.name, f"{path} at {commit}")


def results_in(path: Path, name: str | None = None) -> list[Result]:
    """The results in a folder, in one family of it, or in one file; errors call it by its name."""
    files = [path] if path.is_file() else list(result_files(path)) or sorted(path.glob("*.json"))
    try:
        return [read_result(file) for file in files]
    except StoreError as error:
        raise StoreError(str(error).replace(str(path), name or str(path))) from error


def commit_sha(commit: str, path: Path) -> str:
    """The full hash of a commit of the repository around a path."""
    sha = _git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if sha is None:
        raise StoreError(f"--at {commit}: there is no such commit in the git repository of {path}")
    return sha.decode().strip()


def _git(path: Path, *arguments: str) -> bytes | None:
    """The output of git in the folder of a path; None if it fails or is not installed."""
    command = ["git", "--no-optional-locks", "-C", os.fspath(path.absolute().parent), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, timeout=TIMEOUT, check=True, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
