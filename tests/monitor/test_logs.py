"""The end of a log: from near the end on, whole lines, also after it was cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.monitor import logs
from rldsl.monitor.logs import LogTail


def test_lines_come_once_they_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    tail = LogTail(path)
    assert tail.read_new() == []
    path.write_text("one\ntw")
    assert tail.read_new() == ["one"]
    path.write_text("one\ntwo\nthree\n")
    assert tail.read_new() == ["two", "three"]
    assert tail.read_new() == []


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FIRST_BYTES", 100)
    path = tmp_path / "log.txt"
    path.write_text("".join(f"line {number:03d}\n" for number in range(1000)))
    lines = LogTail(path).read_new()
    assert lines[-1] == "line 999"
    assert len(lines) <= 12


def test_a_log_that_was_cut_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("one\ntwo\n")
    tail = LogTail(path)
    tail.read_new()
    path.write_text("new\n")
    assert tail.read_new() == ["new"]


def test_of_a_progress_bar_the_last_state_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"10%\r50%\r100%\ndone\r\n\xff\n")
    assert LogTail(path).read_new() == ["100%", "done", "\ufffd"]
