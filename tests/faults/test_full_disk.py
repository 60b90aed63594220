"""A disk that is full at any write of a checkpoint: one sentence, and the session goes on once there is room."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rldsl.store.errors import DiskFull
from rldsl.store.session_dir import SessionDir
from tests.faults.record import every, record
from tests.project import work
from tests.train.packs import CASES, session, train
from tests.train.test_integrity import at_frame

PAGE = 4096
"""A tmpfs gives room in pages: with one page less, another write fails."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 16 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path], capture_output=True).returncode:
        pytest.skip("mounting a filesystem needs root")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_disk_that_is_full_at_any_write(name: str, disk: Path, tmp_path: Path) -> None:
    one = session(*CASES[name], frames=384, log_every=64, checkpoint_every=128)
    whole = train(tmp_path / "whole", one).directories[0]
    train(tmp_path / "half", one, stop=at_frame(128))
    runs, directory = disk / "runs", SessionDir(disk / "runs" / one.directory)
    failed = pages = 0
    while True:
        shutil.copytree(tmp_path / "half", runs)
        _fill(disk, pages)
        try:
            train(runs, one)
        except DiskFull as error:
            assert "the disk is full" in str(error) and "\n" not in str(error)
            failed += 1
        finished = directory.state() == "done"
        (disk / "ballast").unlink()
        train(runs, one)
        assert work(directory.path) == work(whole.path)
        assert not [path for path in directory.path.rglob("*") if ".tmp" in path.name]
        shutil.rmtree(runs)
        if finished:
            break
        pages += min(3, every(2))
    assert failed > 3
    record(f"full disk at any write, {name}", cases=failed, different=0)


def _fill(disk: Path, pages: int) -> None:
    """Leaves that many pages of room."""
    free = shutil.disk_usage(disk).free
    with (disk / "ballast").open("wb") as file:
        file.truncate(0)
        file.write(bytes(max(0, free - (pages + 1) * PAGE)))
