"""Parses the fenced code blocks of README.md and docs/*.md.

- ```console: lines that begin with `$ ` are commands, `> ` continues one, the rest is their output.
- ```bash: every line is a command.
- ```python title="x.py" (any language): a file that later commands of the page use.
- ```python without a title: the untitled blocks of a page are one program, in order.

A comment in the line before a block marks it:
`<!-- output varies -->` its output is not compared; `<!-- not run: reason -->` it cannot run in a test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

COMMANDS = ("console", "bash")
DATA = ("text", "json", "csv", "gin")
FENCE = re.compile(r"^(?P<comment><!--[^\n]*-->\n+)?^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class UncheckedBlock(AssertionError):
    """A block that no test would run and that does not give a reason."""


@dataclass
class Command:
    """A command and the output that the page shows below it."""

    text: str
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    where: str
    language: str
    title: str | None
    body: str
    comment: str

    @property
    def skipped(self) -> bool:
        return self.comment.startswith("not run: ") and len(self.comment) > len("not run: ")

    @property
    def varies(self) -> bool:
        return self.comment == "output varies"

    @property
    def runs(self) -> bool:
        """Whether the block is executed: a command, or part of the page's program."""
        return not self.skipped and (self.language in COMMANDS or (self.language == "python" and not self.title))

    @property
    def commands(self) -> list[Command]:
        """The commands of a console or bash block with their output."""
        if self.language not in COMMANDS:
            return []
        if self.language == "bash":
            return [Command(line) for line in self.body.splitlines() if line.strip() and not line.startswith("#")]
        commands: list[Command] = []
        for line in self.body.splitlines():
            if line.startswith("$ "):
                commands.append(Command(line[2:]))
            elif not commands:
                raise UncheckedBlock(f"{self.where}: a console block begins with a command, not with {line!r}")
            elif line.startswith("> ") and not commands[-1].output:
                commands[-1].text += f"\n{line[2:]}"
            else:
                commands[-1].output.append(line.rstrip())
        return commands


def parse_blocks(text: str, name: str) -> list[Block]:
    """The blocks of a page; raises for blocks that would never be run."""
    blocks = [_block(match, text, name) for match in FENCE.finditer(text)]
    fences = sum(line.startswith("```") for line in text.splitlines())
    if fences != 2 * len(blocks):
        raise UncheckedBlock(f"{name}: {fences} fences are not {len(blocks)} blocks")
    for block in blocks:
        _refuse_unchecked(block)
    return blocks


def _block(match: re.Match[str], text: str, name: str) -> Block:
    language, _, rest = match["info"].partition(" ")
    title = re.fullmatch(r'title="([^"]+)"', rest.strip())
    comment = (match["comment"] or "").strip().removeprefix("<!--").removesuffix("-->").strip()
    line = text.count("\n", 0, match.start("info")) + 1
    return Block(f"{name}:{line}", language, title and title[1], match["body"], comment)


def _refuse_unchecked(block: Block) -> None:
    if block.language not in (*COMMANDS, *DATA, "python"):
        raise UncheckedBlock(f"{block.where}: a block of {block.language or 'no language'} is never run")
    if block.language in DATA and re.search(r"^\$ ", block.body, re.MULTILINE):
        raise UncheckedBlock(f"{block.where}: a command in a block of {block.language} is never run")
    if block.comment.startswith("not run") and not block.skipped:
        raise UncheckedBlock(f"{block.where}: it should say why it is not run")


def documents(root: Path) -> list[Path]:
    """README.md and every page of docs/."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]
