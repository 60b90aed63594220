"""Every command of README.md and docs/*.md is run, in order, in a directory of its own; what they print is compared."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.documents import Block, Command, Unknown, blocks, documents

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("experiments", "launchers", "docs/examples")
SECONDS = 60
READERS = 3
ID = re.compile(r"\b[0-9a-f]{12}\b")
UNDER_WAY = re.compile(r"/\S+ frames, \S+ fps")
INTERRUPTED = 130


class Reader:
    """A person who types what a document says, from its first line to its last."""

    def __init__(self, home: Path) -> None:
        self.home = self.here = home.resolve()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "200"}
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))

    def read(self, found: list[Block]) -> int:
        """Does what the blocks say; returns how many commands and programs that were."""
        done = 0
        for block in found:
            if block.skipped:
                continue
            if block.title:
                (self.home / block.title).parent.mkdir(parents=True, exist_ok=True)
                (self.home / block.title).write_text(block.body)
            elif block.language in ("console", "bash"):
                for command in block.commands:
                    self.do(command, block)
                    done += 1
        program = "".join(b.body for b in found if b.language == "python" and not b.title and not b.skipped)
        if program:
            self.do(Command(f"{sys.executable} -c {shlex.quote(program)}"), found[0])
        return done + bool(program)

    def do(self, command: Command, block: Block) -> None:
        """Runs one command and compares what it does with what the document says."""
        if command.text.startswith("cd "):
            asked = subprocess.run(
                ["bash", "-c", f"{command.text} && pwd -P"], cwd=self.here, check=True, capture_output=True, text=True
            )
            self.here = Path(asked.stdout.strip())
            assert self.here.is_relative_to(self.home), f"{block.where}: {command.text} leaves the directory"
        elif command.text.startswith("make"):
            subprocess.run(["make", "-n", *command.text.split()[1:]], cwd=ROOT, check=True, capture_output=True)
        else:
            self._run(command, block)

    def _run(self, command: Command, block: Block) -> None:
        code, printed = self._answer(command)
        said = f"{block.where}: $ {command.text}\n{printed}"
        assert code in expected_codes(command), f"ended with {code}: {said}"
        if command.output and not block.varies:
            assert matches(command.output, printed.splitlines()), f"prints something else: {said}"

    def _answer(self, command: Command) -> tuple[int, str]:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.text}" if "^C" in command.output else command.text],
            cwd=self.here,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        printed = ""
        if "^C" in command.output:
            assert process.stdout is not None
            for line in process.stdout:
                printed += line
                if UNDER_WAY.search(line):
                    process.send_signal(signal.SIGINT)
                    break
        rest, _ = process.communicate(timeout=SECONDS)
        return process.returncode, printed + rest


def expected_codes(command: Command) -> tuple[int, ...]:
    """What a command may end with, by what the document shows of it."""
    if "^C" in command.output:
        return (INTERRUPTED,)
    if any(line.startswith("failed ") for line in command.output):
        return (1,)
    if any(line.startswith("error: ") for line in command.output):
        return (1, 2)  # in the file itself, in the command
    return (0,)


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the output is as shown; `...` stands for any lines, and an id for any id."""
    lines = [".*" if line == "..." else re.escape(ID.sub("<id>", line)) for line in expected]
    pattern = "\n".join(lines)
    return re.fullmatch(pattern, "\n".join(ID.sub("<id>", line.rstrip()) for line in printed), re.DOTALL) is not None


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Future[int]]]:
    """Every document is read at the same time as others: most of a command's time is spent on imports."""
    with ThreadPoolExecutor(READERS) as pool:
        yield {path: pool.submit(_read, path, tmp_path_factory.mktemp(path.stem)) for path in documents(ROOT)}


def _read(path: Path, home: Path) -> int:
    return Reader(home).read(blocks(path.read_text(), path.name))


@pytest.mark.parametrize("path", documents(ROOT), ids=lambda path: path.name)
def test_every_command_of_a_document_does_what_it_says(path: Path, readings: dict[Path, Future[int]]) -> None:
    assert readings[path].result() > 0
    found = blocks(path.read_text(), path.name)
    for block in found:
        if block.title and block.language == "python":
            others = [one.body for one in found if one is not block and not one.skipped]
            name = rf"\b{re.escape(Path(block.title).stem)}\b"
            assert any(re.search(name, other) for other in others), f"{block.where} is never run"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("```sh\nrldsl list\n```\n", "a block of sh is never run"),
        ("```\nrldsl list\n```\n", "a block of no language is never run"),
        ("```text\n$ rldsl list\n```\n", "a command in a block of text is never run"),
        ("<!-- not run: -->\n```bash\nrldsl list\n```\n", "it should say why"),
        ("```console\nrldsl list\n$ ls\n```\n", "begins with a command"),
        ("```console\n$ ls\n", "1 fences are not 0 blocks"),
    ],
)
def test_a_block_that_no_test_would_run_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(Unknown, match=sentence):
        [block.commands for block in blocks(text, "x.md")]


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ false\n```\n",
        "```bash\nfalse\n```\n",
        "```console\n$ true\nerror: it fails\n```\n",
        "```python\nraise SystemExit(1)\n```\n",
    ],
)
def test_a_command_that_does_something_else_is_noticed(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Reader(tmp_path).read(blocks(text, "x.md"))


def test_what_is_shown_is_compared(tmp_path: Path) -> None:
    text = "```console\n$ printf 'one\\ntwo\\n0123456789ab\\n'\none\n...\nba9876543210\n```\n"
    assert Reader(tmp_path).read(blocks(text, "x.md")) == 1
