"""Creates docs/images: the README's experiment planned and trained in a real terminal, the monitor, and a plot.

`make images` takes a few minutes. The images are recorded terminal output.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import closing, suppress
from io import StringIO
from itertools import groupby
from pathlib import Path

import monitor_images
import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

DOCS = Path(__file__).resolve().parent
COLUMNS, LINES = 100, 24
COMMANDS = ("python cartpole.py plan --only ppo --seeds 4", "python cartpole.py --only ppo --seeds 4")
CAPTURE_AT = 65
"""Thousands of frames that every session has reached, out of 100, when the image is taken."""


def experiment_file() -> str:
    """The first Python block of the README."""
    return re.search(r"```python[^\n]*\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL)[1]


def frames_shown(screen: pyte.Screen) -> list[float]:
    """The frames, in thousands, of every session on the screen."""
    return [float(number) for line in screen.display for number in re.findall(r"([\d.]+)k/100k +", line)]


def screens(directory: Path) -> Iterator[pyte.Screen]:
    """The terminal after each change, while the commands run in it."""
    script = "\n".join(f"echo '$ {command}'\n{command}" for command in COMMANDS)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=directory,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    try:
        while True:
            stream.feed(os.read(master, 65536))
            yield screen
    except OSError:  # the commands have exited
        return
    finally:
        _end(process, master)


def _end(process: subprocess.Popen[bytes], master: int) -> None:
    """Stops the commands and waits until nothing writes to the terminal any more."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(OSError):
        while os.read(master, 65536):
            pass
    process.wait()
    os.close(master)


def training_screen() -> Text:
    """The first screen on which every session has reached `CAPTURE_AT`."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "cartpole.py").write_text(experiment_file())
        with closing(screens(Path(directory))) as shown:
            for screen in shown:
                frames = frames_shown(screen)
                if len(frames) == 4 and min(frames) > CAPTURE_AT:
                    return as_text(screen)
    raise SystemExit("training ended before the image was taken")


def as_text(screen: pyte.Screen) -> Text:
    """The lines of a terminal with their colours, without trailing empty lines."""
    lines = [_line(screen, number) for number in range(screen.lines)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return Text("\n").join(lines)


def _line(screen: pyte.Screen, number: int) -> Text:
    text = Text()
    cells = [screen.buffer[number][column] for column in range(screen.columns)]
    for (colour, bold), group in groupby(cells, key=lambda cell: (cell.fg, cell.bold)):
        text.append("".join(cell.data for cell in group), Style(color=_colour(colour), bold=bold))
    text.rstrip()
    return text


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return {"brown": "yellow"}.get(name, name).replace("bright", "bright_")


def learning_curves() -> None:
    """The committed results of all algorithms on CartPole."""
    command = [
        sys.executable,
        "-c",
        "from rldsl.cli import run; run()",
        "plot",
        "results/classic",
        "--only",
        "cartpole",
    ]
    subprocess.run([*command, "--out", str(DOCS / "images" / "plot.svg")], cwd=DOCS.parent, check=True)


def main() -> None:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(training_screen(), soft_wrap=True)
    svg = console.export_svg(title="rldsl", unique_id="training")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no fonts from other hosts
    (DOCS / "images").mkdir(exist_ok=True)
    (DOCS / "images" / "training.svg").write_text(svg)
    monitor_images.make()
    learning_curves()


if __name__ == "__main__":
    main()
