"""On a terminal, a line per session that moves; elsewhere, plain lines."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pyte
import pytest

from rldsl.cli.tables import MOST_STYLED, echo, table
from tests.project import Project, environment

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(500)

    main(cartpole.agent(Random()).frames(1e8).seeds(2))
"""
LINE = r"cartpole/random seed {} .*?([\d.]+)k/100M +[\d.]+k? fps +return \d+\.\d +\S.* left"
COLUMNS, LINES = 120, 40


class Terminal:
    """A pseudo-terminal with a process on it, and what its screen shows."""

    def __init__(self, project: Project, *arguments: str, columns: int = COLUMNS) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=project.root,
            env={name: value for name, value in environment().items() if name != "COLUMNS"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        project.started.append(self.process)
        os.close(slave)
        self.screen = pyte.Screen(columns, LINES)
        self.stream = pyte.ByteStream(self.screen)

    def read(self) -> str:
        """Takes in what the process wrote; returns what the screen shows now."""
        try:
            self.stream.feed(os.read(self.master, 65536))
        except OSError:  # the process has gone
            self.process.wait(30)
        return "\n".join(self.screen.display)

    def until(self, *patterns: str) -> list[re.Match[str]]:
        while self.process.poll() is None:
            shown = self.read()
            if all(matches := [re.search(pattern, shown) for pattern in patterns]):
                return matches
        raise AssertionError("\n".join(self.screen.display))


def test_a_terminal_shows_a_line_for_each_session_with_frames_fps_and_return(project: Project) -> None:
    project.write(EXPERIMENT)
    terminal = Terminal(project, "exp.py")
    first = terminal.until(LINE.format(0), LINE.format(1))
    before = float(first[0][1])
    while float(terminal.until(LINE.format(0))[0][1]) == before:
        pass
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.until("stopping: each session checkpoints first")
    while terminal.process.poll() is None:
        terminal.read()
    shown = terminal.read()
    assert "stopped, all progress is saved; to continue: python exp.py" in shown
    assert terminal.process.returncode == 130
    assert "fps" not in shown, "the bars are gone when it is over"


def test_80_columns_hold_the_bars_and_in_the_end_a_learning_curve(project: Project) -> None:
    project.write(EXPERIMENT)
    terminal = Terminal(project, "exp.py", "--frames", "4e4", columns=80)
    terminal.until(r"cartpole/random seed 0 .*k/40k +return \d+\.\d +\d+s left")
    while terminal.process.poll() is None:
        terminal.read()
    lines = [line.rstrip() for line in terminal.read().splitlines()]
    assert terminal.process.returncode == 0
    assert "CartPole-v1  episode_return by frames, mean of 2 seeds" in lines
    assert sum(any("\u2800" < sign < "\u2900" for sign in line) for line in lines) > 3, "a curve of several lines"
    assert {"  python exp.py enjoy --frames 4e4", "  rldsl watch runs"} <= set(lines)


def test_plain_lines_tell_of_the_way_where_there_is_no_terminal(project: Project) -> None:
    project.write(EXPERIMENT)
    said = project.python("exp.py", "--frames", "4e4", "--seeds", "1").stdout
    assert "\x1b" not in said
    assert "\r" not in said
    way = re.findall(r"seed 0: ([\d.]+)k/40k frames, [\d.]+k? fps, return \d+\.\d, \d+s left\n", said)
    assert way == sorted(way, key=float)
    assert len(way) <= 11
    assert way, said


def test_no_word_becomes_an_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "ended by hooks:watch: enough"
    echo(reason)
    table(["note"], [[reason]])
    table(["note"], [[f"[red]{reason}[/red]"]] * (MOST_STYLED + 1))
    assert capsys.readouterr().out.count(reason) == 2 + MOST_STYLED + 1
