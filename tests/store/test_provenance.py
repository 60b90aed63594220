from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rldsl.store import worktree
from rldsl.store.provenance import Difference, Provenance, collect, differences, write_provenance
from rldsl.store.scrub import scrub_command, scrub_text
from rldsl.store.secrets import offenders
from rldsl.store.worktree import read_worktree

TOKEN = "hf_" + "aB3" * 11


def git(directory: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init")
    (root / "tracked.py").write_text("x = 1\n")
    (root / ".gitignore").write_text("runs/\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "first")
    return root


def test_a_clean_tree(repository):
    facts, diff = collect(["rldsl", "train"], repository)
    code = facts["code"]
    assert (len(code["sha"]), code["branch"], code["dirty"], code["diff_sha256"], diff) == (40, "main", False, None, "")
    assert facts["packages"]["numpy"]
    assert facts["command"] == ["rldsl", "train"]
    assert facts["hardware"]["memory"] > 0
    json.dumps(facts)


def test_a_dirty_tree(repository):
    (repository / "tracked.py").write_text("x = 2\n")
    (repository / "sub").mkdir()
    (repository / "sub" / "new.py").write_text("y = 1\nz = 2")
    (repository / "data.bin").write_bytes(b"\0\1")
    (repository / "runs").mkdir()
    (repository / "runs" / "ignored.py").write_text("no")
    (repository / "other.py").write_text("nobody imports this")
    tree = read_worktree(repository / "sub", [repository / "sub" / "new.py"])
    assert "other.py" not in tree.diff
    assert "-x = 1\n+x = 2\n" in tree.diff
    assert "+++ b/sub/new.py\n@@ -0,0 +1,2 @@\n+y = 1\n+z = 2\n" in tree.diff
    assert "data.bin" not in tree.diff
    assert "ignored.py" not in tree.diff
    assert tree.root == repository


def test_the_diff_makes_the_tree(repository):
    (repository / "tracked.py").write_text("x = 2\n")
    new = {"new.py": "y = 1\n", "open.py": "a = 1\nb = '\f'", "empty.py": ""}
    for name, text in new.items():
        (repository / name).write_text(text)
    diff = read_worktree(repository, [repository / name for name in new]).diff
    git(repository, "stash", "--include-untracked")
    (repository / "d").write_text(diff)
    git(repository, "apply", "d")
    assert (repository / "tracked.py").read_text() == "x = 2\n"
    assert {name: (repository / name).read_text() for name in new} == new


def test_sources_are_kept_wherever_they_lie(repository, tmp_path):
    outside = tmp_path / "experiment.py"
    outside.write_text("outside = 1\n")
    ignored = repository / "runs" / "mine.py"
    ignored.parent.mkdir()
    ignored.write_text("ignored = 1\n")
    diff = read_worktree(repository, [outside, ignored, repository / "tracked.py"]).diff
    assert "+outside = 1\n" in diff
    assert "+ignored = 1\n" in diff
    assert "tracked.py" not in diff
    assert "+outside = 1\n" in read_worktree(tmp_path, [outside]).diff


def test_a_repository_without_a_commit(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "a.py").write_text("a = 1\n")
    (tmp_path / "b.py").write_text("b = 1\n")
    git(tmp_path, "add", "a.py")
    tree = read_worktree(tmp_path, [tmp_path / "b.py"])
    assert tree.sha is None
    assert "+a = 1" in tree.diff
    assert "+b = 1" in tree.diff


def test_a_long_diff_is_cut_with_a_note(repository, monkeypatch):
    monkeypatch.setattr(worktree, "MOST_BYTES", 1000)
    (repository / "long.py").write_text("x = 1\n" * 1000)
    diff = read_worktree(repository, [repository / "long.py"]).diff
    assert len(diff) < 1200
    assert diff.endswith("# cut here: the diff is longer than 1000 characters\n")


def test_outside_of_a_repository_and_without_git(tmp_path, monkeypatch):
    assert collect([], tmp_path).facts["code"]["sha"] is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert collect([], tmp_path).facts["code"]["root"] is None


@pytest.mark.parametrize(
    ("command", "scrubbed"),
    [
        (["--token=abc"], ["--token=***"]),
        (["--token", "abc", "x"], ["--token", "***", "x"]),
        (["--api-key", "abc", "--only", "ppo"], ["--api-key", "***", "--only", "ppo"]),
        (["--no-token", "--only", "ppo"], ["--no-token", "--only", "ppo"]),
        (["HF_TOKEN=abc", "python"], ["HF_TOKEN=***", "python"]),
        (["--set", "hub.Secret=a=b"], ["--set", "hub.Secret=***"]),
        (["--set=hub.token=abc"], ["--set=hub.token=***"]),
        (["--gin", "Hub.password = 'abc'"], ["--gin", "Hub.password =***"]),
        (["push", TOKEN], ["push", "***"]),
        ([f"--name={TOKEN}"], ["--name=***"]),
        (["https://me:abc@host/x"], ["https://***@host/x"]),
        (["--set", "agent.gamma=0.9", "a.py"], ["--set", "agent.gamma=0.9", "a.py"]),
    ],
)
def test_secrets_of_a_command(command, scrubbed):
    assert scrub_command(command) == scrubbed


def test_secrets_of_a_text():
    text = f"+token = '{TOKEN}'\n+url = 'https://user:pass@example.org/x'\n+mail = 'a@b.org'\nhf_hub_download\n"
    assert (
        scrub_text(text) == "+token = '***'\n+url = 'https://***@example.org/x'\n+mail = 'a@b.org'\nhf_hub_download\n"
    )


def test_no_secret_reaches_the_files(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_PRIVATE_VALUE", "from-the-environment")
    (repository / "tracked.py").write_text(f"token = '{TOKEN}'\nurl = 'https://user:swordfish@example.org'\n")
    git(repository, "remote", "add", "origin", "https://user:swordfish@example.org/x.git")
    provenance = collect(["x", "--token", "opensesame", f"HF_TOKEN={TOKEN}"], repository)
    write_provenance(tmp_path, provenance)
    written = "".join(path.read_text() for path in tmp_path.glob("*.*"))
    assert "example.org" in written
    for secret in (TOKEN, "swordfish", "opensesame", "from-the-environment"):
        assert secret not in written


def test_a_later_life_is_written_only_if_it_differs(tmp_path):
    facts = {"time": 1, "pid": 2, "command": ["a"], "python": "3.11.1", "code": {"sha": "1"}}
    assert write_provenance(tmp_path, Provenance(facts, "")).name == "provenance.json"
    assert write_provenance(tmp_path, Provenance({**facts, "time": 5, "pid": 6, "command": ["b"]}, "")) is None
    other = Provenance({**facts, "python": "3.12.0"}, "diff")
    assert write_provenance(tmp_path, other).name == "provenance-2.json"
    assert write_provenance(tmp_path, other) is None
    assert write_provenance(tmp_path, Provenance(facts, "")).name == "provenance-3.json"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "provenance-2.json",
        "provenance-3.json",
        "provenance.json",
        "tree-2.diff",
    ]


def test_differences():
    a = {
        "code": {"sha": "1", "diff_sha256": None},
        "packages": {"numpy": "1", "torch": "2"},
        "python": "3.11",
        "host": "h",
    }
    b = {
        "code": {"sha": "2", "diff_sha256": None},
        "packages": {"numpy": "2", "jax": "3"},
        "python": "3.11",
        "host": "i",
    }
    assert differences(a, a) == []
    assert differences(a, b) == [
        Difference("code", "sha", "1", "2"),
        Difference("package", "jax", None, "3"),
        Difference("package", "numpy", "1", "2"),
        Difference("package", "torch", "2", None),
        Difference("host", "host", "h", "i"),
    ]
    assert differences({}, {}) == []


PRIVATE_KEY = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIabc\n-----END RSA PRIVATE " + "KEY-----"


def test_secrets_of_tracked_files_are_not_in_the_diff(repository, tmp_path):
    tokens = {"a.yaml": "github: ghp_" + "a1B2" * 9, "b.py": f"KEY = {PRIVATE_KEY}", ".env": "PASSWORD=hunter2"}
    for name in tokens:
        (repository / name).write_text("before\n")
    git(repository, "add", "--force", *tokens)
    git(repository, "commit", "-m", "second")
    for name, text in tokens.items():
        (repository / name).write_text(text)
    origin = collect([], repository)
    assert "a.yaml" in origin.diff and "b.py" in origin.diff
    assert "# .env is left out" in origin.diff
    assert not any(secret in origin.diff for secret in ("ghp_", "MIIabc", "hunter2"))
    write_provenance(tmp_path, origin)
    for name in ("tree.diff", "provenance.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_offenders(tmp_path):
    (tmp_path / "tree.diff").write_text("+ hf_" + "a1B2" * 9)
    (tmp_path / "metrics.csv").write_text("frame\n")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "id_ed25519").write_text("x")
    (tmp_path / "id_ed25519.pub").write_text("x")
    found = offenders(sorted(tmp_path.iterdir()))
    assert {path.name: reason for path, reason in found.items()} == {
        "tree.diff": "contains what looks like a Hugging Face token",
        "link": "is a symbolic link",
        "id_ed25519": "has the name of a file with keys or credentials",
    }
