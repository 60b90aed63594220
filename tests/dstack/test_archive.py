"""What is uploaded: the code as git sees it, compressed, the same for the same files, and not too much of it."""

from __future__ import annotations

import io
import json
import random
import subprocess
import tarfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rldsl import SpecError
from rldsl.launch.code import freeze
from rldsl.launch.dstack.archive import code_files, library_files, wrapped
from rldsl.launch.dstack.requirements import extras_of, requirements
from rldsl.store.sources import source_files

EXPERIMENT = "from rldsl import main\n"


def unwrapped(archive: bytes) -> dict[str, bytes]:
    """What a machine has after both layers."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as outer:
        (inner,) = outer.getmembers()
        packed = outer.extractfile(inner)
        assert packed is not None
        with tarfile.open(fileobj=packed, mode="r:gz") as tar:
            return {one.name: tar.extractfile(one).read() for one in tar.getmembers()}  # type: ignore[union-attr]


def test_what_goes_in_comes_out_and_equal_files_are_equal_bytes() -> None:
    files = {"a/b.py": b"x = 1\n", "c" * 150: b"", "grüße.txt": b"\0\1"}
    assert unwrapped(wrapped("code.tar.gz", files)) == files
    assert wrapped("code.tar.gz", files) == wrapped("code.tar.gz", dict(files))


def test_too_much_is_a_sentence_that_names_the_largest() -> None:
    noise = random.Random(0).randbytes
    files = {"small.py": b"x", "weights.bin": noise(1_500_000), "video.mp4": noise(800_000)}
    with pytest.raises(SpecError, match=r"2\.3 MB, more than the 2\.1 MB .* weights\.bin \(1\.5 MB\), video\.mp4"):
        wrapped("code.tar.gz", files)


def test_a_server_with_another_limit_can_be_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"weights.bin": random.Random(0).randbytes(3_000_000)}
    monkeypatch.setenv("DSTACK_SERVER_CODE_UPLOAD_LIMIT", "4000000")
    assert len(wrapped("code.tar.gz", data)) > 3_000_000
    monkeypatch.setenv("DSTACK_SERVER_CODE_UPLOAD_LIMIT", "0")
    assert len(wrapped("code.tar.gz", data)) > 3_000_000


def test_the_code_is_what_git_would_take_and_never_the_runs(tmp_path: Path) -> None:
    for name, text in {".gitignore": "data/\n", "exp.py": EXPERIMENT, "data/x.bin": "x", "runs/y.csv": "y"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    files = code_files(freeze(tmp_path / "exp.py", tmp_path / "runs").folder)
    project = {name for name in files if name.startswith("project/") and not name.endswith(".worktree.json")}
    assert "project/exp.py" in project
    assert not [name for name in project if "data" in name or "runs" in name]


def test_rldsl_itself_goes_along_as_a_package_that_submitit_knows(tmp_path: Path) -> None:
    (tmp_path / "exp.py").write_text(EXPERIMENT)
    files = code_files(freeze(tmp_path / "exp.py", tmp_path / "runs").folder)
    assert "lib/rldsl/launch/dstack/host.py" in files
    assert b"DstackJobEnvironment" in files["lib/rldsl.dist-info/entry_points.txt"]
    assert not [name for name in files if "__pycache__" in name]
    assert len(wrapped("code.tar.gz", files)) < 1_000_000


def test_rldsl_goes_along_with_functions_too() -> None:
    files = library_files()
    assert "lib/rldsl/launch/dstack/host.py" in files and "lib/rldsl.dist-info/entry_points.txt" in files
    assert not [name for name in files if name.startswith("project/")]


def test_extras_and_what_the_experiment_imports_reach_the_machine(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import json\nimport hypothesis\n")
    text = "import own\nfrom pytest import raises\nfrom rldsl import main\nenv = 'psutil:Env-v0'\n"
    (tmp_path / "exp.py").write_text(text)
    plan = json.dumps({"trials": [{"env": {"kind": "playground"}}, {"env": {"kind": "box2d", "backend": "envpool"}}]})
    extras = extras_of(plan.encode())
    assert extras == {"playground", "envpool"} and extras_of(b"{}") == set()
    here = requirements(source_files(tmp_path / "exp.py", tmp_path), extras, gpu=True)
    lines = {one.name: one for one in map(Requirement, here.splitlines())}
    assert {"torch", "hypothesis", "pytest", "psutil", "envpool", "jax", "playground"} <= lines.keys()
    assert not {"own", "rldsl", "json", "mypy"} & lines.keys()
    assert lines["jax"].extras == {"cuda12"}, "as the machine has a GPU"
    assert lines["gymnasium"].extras == {"box2d", "classic-control", "mujoco", "atari"}
    plain = {one.name for one in map(Requirement, requirements().splitlines())}
    assert "torch" in plain and not {"jax", "envpool", "pytest"} & plain


def test_machines_get_the_versions_that_are_here() -> None:
    lines = [Requirement(line) for line in requirements().splitlines()]
    assert {"torch", "pydantic", "submitit", "huggingface_hub"} <= {one.name for one in lines}
    assert all(str(one.specifier).startswith("==") for one in lines)
    assert all("+" not in str(one.specifier) for one in lines)
