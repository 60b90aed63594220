"""The frozen copy of the code: all that a job needs, nothing that it does not, and once for equal contents."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rldsl import SpecError
from rldsl.launch import code as frozen
from rldsl.launch.code import freeze_code, frozen_path, project_root, python_path
from rldsl.store.worktree import read_worktree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project without a repository."""
    made = tmp_path / "project"
    for name in ("exp.py", "deep/helper.py", "asset.xml", ".env", "runs/old.txt", "venv/pyvenv.cfg", "venv/lib.py"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    return made


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", root, *who, *words], check=True, capture_output=True)


def project(copy: Path) -> set[str]:
    own = copy / "project"
    return {str(path.relative_to(own)) for path in own.rglob("*") if path.is_file()}


def test_without_a_repository_it_is_the_directory_without_the_obvious(root: Path) -> None:
    copy = freeze_code(root / "exp.py", root / "runs")
    assert project(copy) == {"exp.py", "deep/helper.py", "asset.xml", ".worktree.json"}
    assert (copy / "lib" / "rldsl" / "__init__.py").is_file(), "rldsl itself, which is not an installed package here"
    assert copy.parent == (root / "runs" / ".code").resolve()


def test_with_a_repository_it_is_what_git_has_and_would_have(root: Path) -> None:
    (root / ".gitignore").write_text("venv/\nruns/\n*.xml\ndeep/exp.py\n")
    (root / ".hidden").write_text("tracked")
    git(root, "init")
    git(root, "add", ".gitignore", ".hidden", "exp.py")
    git(root, "commit", "-m", "x")
    (root / "deep" / "exp.py").write_text("ignored, and yet the experiment")
    copy = freeze_code(root / "deep" / "exp.py", root / "runs")
    expected = {".gitignore", ".hidden", "exp.py", "deep/helper.py", "deep/exp.py", ".worktree.json"}
    assert project(copy) == expected, "no .env that git does not track"
    assert project_root(root / "deep" / "exp.py") == root


def test_equal_contents_have_one_copy_and_other_contents_another(root: Path) -> None:
    first = freeze_code(root / "exp.py", root / "runs")
    assert freeze_code(root / "exp.py", root / "runs") == first
    (root / "deep" / "helper.py").write_text("changed")
    second = freeze_code(root / "exp.py", root / "runs")
    assert second != first and (first / "project" / "deep" / "helper.py").read_text() == "deep/helper.py"
    assert sorted(path.name for path in first.parent.iterdir()) == sorted([first.name, second.name])


def test_the_copy_tells_of_the_tree_that_it_was_made_from(root: Path) -> None:
    git(root, "init")
    git(root, "add", "exp.py")
    git(root, "commit", "-m", "x")
    (root / "exp.py").write_text("dirty")
    was = read_worktree(root, [root / "exp.py"])
    copy = freeze_code(root / "exp.py", root / "runs")
    git(root, "commit", "-am", "later")
    assert was.sha and "dirty" in was.diff
    assert read_worktree(copy / "project" / "deep") == was, "not of the repository around it, as it is now"


def test_a_project_that_is_too_large_names_the_largest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "MOST_BYTES", 3_000_000)
    (root / "data.bin").write_bytes(bytes(3_000_001))
    with pytest.raises(SpecError, match=r"the code is \d MB in .*; the largest are project/data\.bin, .*\.gitignore"):
        freeze_code(root / "exp.py", root / "runs")


def test_paths_of_the_project_are_those_of_the_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = freeze_code(root / "exp.py", root / "runs")
    assert frozen_path(copy, root / "deep", root.resolve()).is_dir()
    assert frozen_path(copy, Path("/usr"), root.resolve()) == copy / "project"
    monkeypatch.setenv("PYTHONPATH", f"{root / 'deep'}:/usr/share")
    assert python_path(copy, root.resolve()) == (f"{copy}/lib", f"{copy}/project/deep", "/usr/share")


def test_a_copy_is_whole_or_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy", fail)
    with pytest.raises(Exception, match="the disk is full"):
        freeze_code(root / "exp.py", root / "runs")
    monkeypatch.undo()
    assert project(freeze_code(root / "exp.py", root / "runs")) >= {"exp.py"}
