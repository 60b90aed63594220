"""Nonsense at the prompt is one sentence: no traceback, no hang, no memory, and nothing is written."""

from __future__ import annotations

import os
import time

import pytest

from tests.cli.test_bad_input import GOOD
from tests.project import Project

DEEP = "[" * 5000 + "]" * 5000
GARBAGE = bytes(range(256)) * 4


def refusal(project: Project, *arguments: object, command: str = "plan") -> str:
    before = project.files()
    began = time.monotonic()
    ran = project.python("exp.py", command, *arguments)
    assert time.monotonic() - began < 30
    assert ran.returncode in (1, 2), ran.stdout
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""
    assert project.files() == before
    (line,) = ran.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def good(project: Project) -> Project:
    project.write(GOOD)
    return project


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--set", 'agent={"kind":[]}'], "cartpole/random.agent names no known agent"),
        (["--set", "agent={'kind': {1, 2}}"], "cartpole/random.agent names no known agent"),
        (["--set", f"env={DEEP}"], "cartpole/random.env"),
        (["--set", f"env={{'a': {'-' * 9000}1}}"], "cartpole/random.env"),
        (["--set", "seeds.first=999999", "--set", "seeds.count=2"], "seeds from 1,000,000 on are those of searches"),
        (["--frames", "1e300"], "budget.frames should be less than or equal to 1000000000000000"),
        (["--gin", "PPO.gamma = ("], "--gin 'PPO.gamma = (': not valid gin: "),
        (["--gin", "PPO.gamma = " + DEEP], "not valid gin: it is nested too deeply"),
        (["--gin", "x = %x\nPPO.gamma = %x"], "it is nested too deeply, or refers to itself"),
        (["--gin", "Random.\x00 = 1"], "--gin"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_overrides(good: Project, options: list[str], sentence: str) -> None:
    if any("\0" in word for word in options):
        options = [word.replace("\0", "\x01") for word in options]
    assert sentence in refusal(good, *options)


def test_seeds_are_refused_before_memory_is_used(good: Project) -> None:
    assert "99,999,999,999 seeds are more than the 1,000,000" in refusal(good, "--seeds", "99999999999")


@pytest.mark.parametrize("name", ["..", "a/../b", "./a", "a/.", "x" * 500, "é" * 100])
def test_names_that_are_no_names(project: Project, name: str) -> None:
    project.write(GOOD.replace('"cartpole"', repr(name)))
    assert "exp.py:3: the experiment's name should" in refusal(project)


def test_a_gin_file_that_includes_itself(good: Project) -> None:
    good.write("include 'b.gin'\n", "a.gin")
    good.write("include 'a.gin'\n", "b.gin")
    assert refusal(good, "--gin-file", "a.gin") == "error: b.gin:1: a.gin includes itself"


@pytest.mark.parametrize("option", ["--gin-file", "--plan"])
def test_files_that_are_no_files(good: Project, option: str) -> None:
    (good.root / "garbage").write_bytes(GARBAGE)
    (good.root / "deep").write_text(DEEP)
    (good.root / "folder").mkdir()
    (good.root / "loop").symlink_to("loop")
    for name in ("garbage", "deep", "folder", "loop", "x" * 300, "missing"):
        assert name[:40] in refusal(good, option, name, command="train")


def test_an_experiment_file_that_is_not_python(project: Project) -> None:
    (project.root / "garbage.py").write_bytes(GARBAGE)
    (project.root / "folder.py").mkdir()
    project.write("x = (\n", "half.py")
    for name in ("garbage.py", "folder.py", "half.py", f"{'x' * 300}.py"):
        ran = project.rldsl("plan", name)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith("error: ") and ran.stderr.count("\n") == 1, ran.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_experiment_file_that_cannot_be_read(good: Project) -> None:
    (good.root / "exp.py").chmod(0)
    ran = good.rldsl("plan", "exp.py")
    assert (ran.returncode, ran.stderr) == (2, "error: cannot read exp.py: permission denied\n")
