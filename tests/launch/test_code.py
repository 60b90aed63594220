"""The frozen copy of the code: all that a job needs, nothing that it does not, and once for equal contents."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from rldsl import Local, SpecError
from rldsl.launch import code as frozen
from rldsl.launch.code import freeze, frozen_path, project_root, python_path
from rldsl.launch.job_records import new_submission
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


def test_without_a_repository_it_is_the_experiment_and_what_it_imports(root: Path) -> None:
    (root / "exp.py").write_text("import deep.helper, os\nENV = 'mine.env:Task'\n")
    (root / "deep" / "helper.py").write_text("from . import other\nfrom .pack.inner import name")
    for name in ("deep/other.py", "deep/pack/__init__.py", "deep/pack/inner.py", "mine/env.py", "unused.py", "a.csv"):
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text("")
    copy = freeze(root / "exp.py", root / "runs").folder
    modules = {"deep/helper.py", "deep/other.py", "deep/pack/__init__.py", "deep/pack/inner.py", "mine/env.py"}
    assert project(copy) == {"exp.py", ".worktree.json"} | modules
    assert (copy / "lib" / "rldsl" / "__init__.py").is_file(), "rldsl itself, which is not an installed package here"
    assert copy.parent == (root / "runs" / ".code").resolve()


def test_with_a_repository_it_is_what_git_tracks_and_the_experiment(root: Path) -> None:
    (root / ".gitignore").write_text("venv/\nruns/\n*.xml\ndeep/exp.py\n")
    (root / ".hidden").write_text("tracked")
    git(root, "init")
    git(root, "add", ".gitignore", ".hidden", "exp.py")
    git(root, "commit", "-m", "x")
    (root / "deep" / "exp.py").write_text("import helper  # both are not tracked")
    copy = freeze(root / "deep" / "exp.py", root / "runs").folder
    expected = {".gitignore", ".hidden", "exp.py", "deep/helper.py", "deep/exp.py", ".worktree.json"}
    assert project(copy) == expected, "nothing else that git does not track"
    assert project_root(root / "deep" / "exp.py") == root


def test_equal_contents_have_one_copy_and_other_contents_another(root: Path) -> None:
    (root / "exp.py").write_text("import deep.helper")
    first = freeze(root / "exp.py", root / "runs").folder
    assert freeze(root / "exp.py", root / "runs").folder == first
    (root / "deep" / "helper.py").write_text("changed")
    second = freeze(root / "exp.py", root / "runs").folder
    assert second != first and (first / "project" / "deep" / "helper.py").read_text() == "deep/helper.py"
    assert sorted(path.name for path in first.parent.iterdir()) == sorted([first.name, second.name])


def test_the_copy_tells_of_the_tree_that_it_was_made_from(root: Path) -> None:
    git(root, "init")
    git(root, "add", "exp.py", "deep")
    git(root, "commit", "-m", "x")
    (root / "exp.py").write_text("dirty")
    was = read_worktree(root, [root / "exp.py"])
    copy = freeze(root / "exp.py", root / "runs").folder
    git(root, "commit", "-am", "later")
    assert was.sha and "dirty" in was.diff
    assert read_worktree(copy / "project" / "deep") == was, "not of the repository around it, as it is now"


def test_a_project_that_is_too_large_names_the_largest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "MOST_BYTES", 3_000_000)
    (root / "data.bin").write_bytes(bytes(3_000_001))
    with pytest.raises(SpecError, match=r"the code is \d MB in .*; the largest are project/data\.bin, .*include"):
        freeze(root / "exp.py", root / "runs", ["data.bin"])


def test_paths_of_the_project_are_those_of_the_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "exp.py").write_text("import deep.helper")
    copy = freeze(root / "exp.py", root / "runs").folder
    assert frozen_path(copy, root / "deep", root.resolve()).is_dir()
    assert frozen_path(copy, Path("/usr"), root.resolve()) == copy / "project"
    monkeypatch.setenv("PYTHONPATH", f"{root / 'deep'}:/usr/share")
    assert python_path(copy, root.resolve()) == (f"{copy}/lib", f"{copy}/project/deep", "/usr/share")


def test_a_copy_is_whole_or_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy", fail)
    with pytest.raises(Exception, match="the disk is full"):
        freeze(root / "exp.py", root / "runs")
    monkeypatch.undo()
    assert not list((root / "runs" / ".code").glob(".*")), "no half copy"
    assert project(freeze(root / "exp.py", root / "runs").folder) >= {"exp.py"}


KEY = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\nabc\n-----END OPENSSH PRIVATE " + "KEY-----\n"
SECRETS = {
    "id_rsa": KEY,
    "deploy.txt": KEY,
    "credentials.json": "{}",
    ".env": "A=b",
    "conf/service_account.json": "{}",
    "notes.md": "token: ghp_" + "a1B2" * 9,
    "aws.cfg": "key = AKIA" + "ABCDEFGH12345678",
    "train.sh": "wandb login " + "0123456789abcdef0123" * 2,
}


def tracked(root: Path, names: Iterable[str]) -> None:
    git(root, "init")
    git(root, "add", "--force", "exp.py", *names)
    git(root, "commit", "-m", "x")


def test_keys_and_credentials_are_left_out_with_a_message_even_if_git_tracks_them(root: Path) -> None:
    for name, text in SECRETS.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    tracked(root, SECRETS)
    code = freeze(root / "exp.py", root / "runs")
    assert project(code.folder) == {"exp.py", ".worktree.json"}
    assert len(code.left_out) == len(SECRETS)
    assert all(any(name in sentence for sentence in code.left_out) for name in SECRETS)
    everything = b"".join(path.read_bytes() for path in (root / "runs" / ".code").rglob("*") if path.is_file())
    assert not [name for name, text in SECRETS.items() if len(text) > 10 and text.encode() in everything]


def test_an_experiment_with_a_token_in_it_is_refused(root: Path) -> None:
    (root / "exp.py").write_text("TOKEN = 'hf_" + "a1B2" * 9 + "'")
    with pytest.raises(SpecError, match=r"exp\.py contains what looks like a Hugging Face token: .* pass_env"):
        freeze(root / "exp.py", root / "runs")


def test_more_files_are_copied_only_if_they_are_asked_for(root: Path) -> None:
    (root / "assets").mkdir()
    (root / "assets" / "a.xml").write_text("a")
    (root / "assets" / "key.pem").write_text(KEY)
    code = freeze(root / "exp.py", root / "runs", ["asset.*", "assets"])
    assert project(code.folder) == {"exp.py", ".worktree.json", "asset.xml", "assets/a.xml"}
    assert len(code.left_out) == 1 and "key.pem" in code.left_out[0]
    with pytest.raises(SpecError, match=r"nothing in .* matches 'none'"):
        freeze(root / "exp.py", root / "runs", ["none"])
    for pattern in ("/etc/*", "../other", "a/../../b", ".."):
        with pytest.raises(SpecError, match="below the project"):
            Local(include=(pattern,))


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("private")
    (root / "far").symlink_to(tmp_path / "outside.txt")
    (root / "up").symlink_to("../outside.txt")
    (root / "near").symlink_to("asset.xml")
    tracked(root, ["far", "up", "near", "asset.xml"])
    code = freeze(root / "exp.py", root / "runs")
    assert project(code.folder) == {"exp.py", ".worktree.json", "near", "asset.xml"}
    assert (code.folder / "project" / "near").is_symlink()
    assert len(code.left_out) == 2


def test_nobody_else_can_read_the_copy(root: Path) -> None:
    folder = freeze(root / "exp.py", root / "runs").folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} <= {0o600, 0o700}
    assert new_submission(root / "runs").stat().st_mode & 0o777 == 0o700


def test_other_runs_and_data_do_not_travel(root: Path) -> None:
    for name in ("more-runs/a/b/seed-0/metrics.csv", "data/big.npz", "wandb/run"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("x")
    tracked(root, [])
    assert project(freeze(root / "exp.py", root / "runs").folder) == {"exp.py", ".worktree.json"}
