"""Runs every command of README.md and docs/*.md in order, one directory per page, and compares the output."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.docs.documents import Block, Command, UncheckedBlock, documents, parse_blocks
from tests.hub.loopback import TOKEN, running_hub

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("experiments", "launchers", "results", "docs/examples")
COLUMNS, README_COLUMNS = 200, 80
TIMEOUT = 180
READERS = 3
ID = re.compile(r"\b[0-9a-f]{12}\b")
TRAINING = re.compile(r"/\S+ frames, \S+ fps")
INTERRUPTED = 130
HUB = "https://huggingface.co"
HUB_PAGES = ("sharing.md", "loading-an-agent.md", "graduating.md")
"""Pages whose commands use a Hub on this machine."""


class Reader:
    """Types the commands of a page into a shell, from the first to the last."""

    def __init__(self, home: Path, columns: int = COLUMNS, variables: Mapping[str, str] | None = None) -> None:
        self.home = self.here = home.resolve()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": str(columns), **(variables or {})}
        self.printed_ids: set[str] = set()
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))

    def read(self, blocks: list[Block]) -> int:
        """Runs the blocks; returns the number of commands and programs."""
        count = 0
        for block in blocks:
            if block.skipped:
                continue
            if block.title:
                (self.home / block.title).parent.mkdir(parents=True, exist_ok=True)
                (self.home / block.title).write_text(block.body)
            for command in block.commands:
                self.run(command, block)
                count += 1
        program = "".join(block.body for block in blocks if block.runs and block.language == "python")
        if program:
            self.run(Command(f"{sys.executable} -c {shlex.quote(program)}"), blocks[0])
        return count + bool(program)

    def run(self, command: Command, block: Block) -> None:
        """Runs one command and compares its output and exit code with the page."""
        if command.text.startswith("cd "):
            shell = ["bash", "-c", f"{command.text} && pwd -P"]
            answer = subprocess.run(shell, cwd=self.here, check=True, capture_output=True, text=True)
            self.here = Path(answer.stdout.strip())
            assert self.here.is_relative_to(self.home), f"{block.where}: {command.text} leaves the directory"
        elif command.text.startswith("make"):
            subprocess.run(["make", "-n", *command.text.split()[1:]], cwd=ROOT, check=True, capture_output=True)
        else:
            self._compare(command, block)

    def _compare(self, command: Command, block: Block) -> None:
        code, printed = self._execute(command)
        printed = printed.replace(self.environment.get("HF_ENDPOINT", HUB), HUB)
        self.printed_ids |= set(ID.findall(printed))
        transcript = f"{block.where}: $ {command.text}\n{printed}"
        assert code in expected_codes(command), f"exit code {code}: {transcript}"
        if command.output and not block.varies:
            assert matches(command.output, printed.splitlines()), f"other output: {transcript}"

    def _execute(self, command: Command) -> tuple[int, str]:
        interrupt = "^C" in command.output
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.text}" if interrupt else command.text],
            cwd=self.here,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        printed = ""
        if interrupt:
            assert process.stdout is not None
            for line in process.stdout:
                printed += line
                if TRAINING.search(line):
                    process.send_signal(signal.SIGINT)
                    break
        rest, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, printed + rest


def expected_codes(command: Command) -> tuple[int, ...]:
    """The exit codes that fit the output on the page."""
    if "^C" in command.output:
        return (INTERRUPTED,)
    if any(line.startswith("failed ") for line in command.output):
        return (1,)
    if any(line.startswith("error: ") for line in command.output):
        return (2,)
    return (0,)


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the output is as on the page; `...` stands for any lines, and an id for any id."""
    lines = [".*" if line == "..." else re.escape(ID.sub("<id>", line)) for line in expected]
    pattern = "\n".join(lines)
    return re.fullmatch(pattern, "\n".join(ID.sub("<id>", line.rstrip()) for line in printed), re.DOTALL) is not None


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Future[int]]]:
    """Pages are read in parallel: most of a command's time is spent on imports."""
    with ThreadPoolExecutor(READERS) as pool:
        yield {path: pool.submit(_read, path, tmp_path_factory.mktemp(path.stem)) for path in documents(ROOT)}


def _read(path: Path, home: Path) -> int:
    with _hub() if path.name in HUB_PAGES else nullcontext({}) as hub:
        return _read_page(path, Reader(home, README_COLUMNS if path.name == "README.md" else COLUMNS, hub))


@contextmanager
def _hub() -> Iterator[dict[str, str]]:
    """A Hub on this machine, and the variables with which commands find it."""
    with running_hub() as hub:
        yield {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "HF_REPO": "me/results",
            "HF_HOME": hub.xet,
            "HF_HUB_DISABLE_XET": "1",
        }


def _read_page(path: Path, reader: Reader) -> int:
    blocks = parse_blocks(path.read_text(), path.name)
    count = reader.read(blocks)
    shown = {id for block in blocks if not block.skipped for command in block.commands for id in _ids(command)}
    assert shown <= reader.printed_ids, f"{path.name}: no command prints {sorted(shown - reader.printed_ids)}"
    return count


def _ids(command: Command) -> list[str]:
    return ID.findall("\n".join(command.output))


@pytest.mark.parametrize("path", documents(ROOT), ids=lambda path: path.name)
def test_every_command_works_as_shown(path: Path, readings: dict[Path, Future[int]]) -> None:
    blocks = parse_blocks(path.read_text(), path.name)
    assert bool(readings[path].result()) == any(block.runs for block in blocks)
    for block in blocks:
        if block.title and block.language == "python":
            others = [other.body for other in blocks if other is not block and not other.skipped]
            name = rf"\b{re.escape(Path(block.title).stem)}\b"
            assert any(re.search(name, other) for other in others), f"{block.where} is never run"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```sh\nrldsl list\n```\n", "a block of sh is never run"),
        ("```\nrldsl list\n```\n", "a block of no language is never run"),
        ("```text\n$ rldsl list\n```\n", "a command in a block of text is never run"),
        ("<!-- not run: -->\n```bash\nrldsl list\n```\n", "it should say why"),
        ("```console\nrldsl list\n$ ls\n```\n", "begins with a command"),
        ("```console\n$ ls\n", "1 fences are not 0 blocks"),
    ],
)
def test_unchecked_blocks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UncheckedBlock, match=message):
        [block.commands for block in parse_blocks(text, "x.md")]


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
def test_deviations_are_detected(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Reader(tmp_path).read(parse_blocks(text, "x.md"))


def test_output_is_compared(tmp_path: Path) -> None:
    text = "```console\n$ printf 'one\\ntwo\\n0123456789ab\\n'\none\n...\nba9876543210\n```\n"
    assert Reader(tmp_path).read(parse_blocks(text, "x.md")) == 1
