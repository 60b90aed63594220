from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldsl.store.errors import CannotWrite, DiskFull
from rldsl.store.files import TailReader, append_line, replace_json, replace_text

APPEND = """
    import sys
    from pathlib import Path
    from rldsl.store.files import append_line
    path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for i in range(count):
        append_line(path, f"{name}-{i}-" + "x" * (i % 300))
        if name == "acknowledged":
            print(i)
"""


def test_replace_leaves_one_file(tmp_path):
    path = tmp_path / "a.json"
    replace_json(path, {"a": 1})
    replace_text(path, "second")
    assert path.read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]


def test_failed_replace_keeps_the_old_file(tmp_path, file_size_limit):
    path = tmp_path / "a.txt"
    replace_text(path, "old")
    file_size_limit(1000)
    with pytest.raises(DiskFull, match=r"cannot write .*a\.txt: the disk is full"):
        replace_text(path, "x" * 5000)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_append_to_a_full_disk_leaves_whole_lines_only(tmp_path, file_size_limit):
    path = tmp_path / "lines"
    file_size_limit(1000)
    for _ in range(9):
        append_line(path, "y" * 100)
    with pytest.raises(DiskFull, match="lines: the disk is full"):
        append_line(path, "z" * 100)
    assert path.read_text() == ("y" * 100 + "\n") * 9
    append_line(path, "short")
    assert path.read_text().endswith("y\nshort\n")


def test_append_to_a_really_full_filesystem(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small filesystem is not allowed here")
    try:
        path = tmp_path / "lines"
        acknowledged = 0
        with pytest.raises(DiskFull):
            while True:
                append_line(path, f"{acknowledged:06d}" + "x" * 777)
                acknowledged += 1
        assert [int(line[:6]) for line in path.read_text().splitlines()] == list(range(acknowledged))
        assert path.read_text().endswith("x\n")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_append_where_a_file_is_in_the_way(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match=r"cannot write .*not a directory"):
        append_line(tmp_path / "file" / "lines", "x")


def test_append_refuses_two_lines(tmp_path):
    with pytest.raises(ValueError, match="line break"):
        append_line(tmp_path / "lines", "a\nb")


@pytest.mark.parametrize("half", ["half", "h" * 200_000])
def test_append_cuts_a_half_line(tmp_path, half):
    path = tmp_path / "lines"
    path.write_text("whole\n" + half)
    append_line(path, "next")
    assert path.read_text() == "whole\nnext\n"


def test_append_cuts_a_file_that_is_one_half_line(tmp_path):
    path = tmp_path / "lines"
    path.write_text("half")
    append_line(path, "next")
    assert path.read_text() == "next\n"


def test_concurrent_appenders_lose_and_tear_nothing(tmp_path, child):
    path = tmp_path / "lines"
    writers = [child(APPEND, path, name, 2000) for name in ("left", "right")]
    for writer in writers:
        writer.finish()
    lines = path.read_text().splitlines()
    expected = [f"{name}-{i}-" + "x" * (i % 300) for name in ("left", "right") for i in range(2000)]
    assert sorted(lines) == sorted(expected)
    assert [line for line in lines if line.startswith("left")] == expected[:2000]


def test_a_killed_writer_loses_nothing_acknowledged(tmp_path, child):
    for attempt in range(4):
        path = tmp_path / f"lines-{attempt}"
        writer = child(APPEND, path, "acknowledged", 1_000_000)
        acknowledged = [writer.line(), writer.line()]
        time.sleep(random.random() * 0.1)
        acknowledged += writer.kill()
        lines = TailReader(path).read_new()
        assert len(lines) >= len(acknowledged) > 1
        assert lines == [f"acknowledged-{i}-" + "x" * (i % 300) for i in range(len(lines))]


@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"a", b"\n")), max_size=30))
def test_tail_gives_the_same_lines_however_they_arrive(tmp_path_factory, chunks):
    path = tmp_path_factory.mktemp("tail") / "lines"
    reader = TailReader(path)
    seen = reader.read_new()
    for chunk in chunks:
        with path.open("ab") as file:
            file.write(chunk)
        seen += reader.read_new()
        assert not reader.restarted
    whole = b"".join(chunks)
    assert seen == [line.decode("utf-8", "replace") for line in whole.split(b"\n")[:-1]]
    assert reader.read_new() == []


def test_tail_is_not_confused_by_a_half_line_that_was_cut(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one\nha")
    reader = TailReader(path)
    assert reader.read_new() == ["one"]
    append_line(path, "two")
    assert reader.read_new() == ["two"]
    assert not reader.restarted


def test_tail_starts_over_when_the_file_shrinks_or_is_another(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one\ntwo\n")
    reader = TailReader(path)
    reader.read_new()
    path.write_text("new\n")
    assert (reader.read_new(), reader.restarted) == (["new"], True)
    assert (reader.read_new(), reader.restarted) == ([], False)
    replace_text(path, "another\nfile\n")
    assert (reader.read_new(), reader.restarted) == (["another", "file"], True)
    path.unlink()
    assert (reader.read_new(), reader.restarted) == ([], True)


def test_tail_holds_no_file_open(tmp_path):
    path = tmp_path / "lines"
    path.write_text("one\n")
    readers = [TailReader(path) for _ in range(3)]
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert all(reader.read_new() == ["one"] for reader in readers)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
