"""LogTail returns complete lines from the end of a log, also after it was truncated."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.monitor import log_tail
from rldsl.monitor.log_tail import LogTail


def test_lines_are_returned_once_they_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    tail = LogTail(path)
    assert tail.read_new() == []
    path.write_text("one\ntw")
    assert tail.read_new() == ["one"]
    path.write_text("one\ntwo\nthree\n")
    assert tail.read_new() == ["two", "three"]
    assert tail.read_new() == []


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "MAX_BYTES", 100)
    path = tmp_path / "log.txt"
    path.write_text("".join(f"line {number:03d}\n" for number in range(1000)))
    lines = LogTail(path).read_new()
    assert lines[-1] == "line 999"
    assert len(lines) <= 12


def test_a_truncated_log_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("one\ntwo\n")
    tail = LogTail(path)
    tail.read_new()
    path.write_text("new\n")
    assert tail.read_new() == ["new"]


def test_a_progress_bar_shows_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"10%\r50%\r100%\ndone\r\n\xff\n")
    assert LogTail(path).read_new() == ["100%", "done", "\ufffd"]
