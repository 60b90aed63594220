"""A document as a test sees it: its fenced blocks, and what each of them claims.

- ```console: lines that begin with `$ ` are commands, `> ` goes on with one, the rest is what they print.
- ```bash: every line is a command.
- ```python title="x.py" (any language): a file that later commands of the document use.
- ```python without a title: a program; those of a document are one program, in order.

A comment in the line before a block says what is special about it:
`<!-- output varies -->` its output is not compared; `<!-- not run: reason -->` it cannot run here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

COMMANDS = ("console", "bash")
DATA = ("text", "json", "csv", "gin")
FENCE = re.compile(r"^(?P<comment><!--[^\n]*-->\n+)?^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Unknown(AssertionError):
    """A block that no test would run, and that does not say why."""


@dataclass
class Command:
    """A command, and the lines that the document shows below it."""

    text: str
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

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
    def commands(self) -> list[Command]:
        """The commands of a block, with their output; none where it holds something else."""
        if self.language not in COMMANDS:
            return []
        if self.language == "bash":
            return [Command(line) for line in self.body.splitlines() if line.strip() and not line.startswith("#")]
        found: list[Command] = []
        for line in self.body.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            elif not found:
                raise Unknown(f"{self.where}: a console block begins with a command, not with {line!r}")
            elif line.startswith("> ") and not found[-1].output:
                found[-1].text += f"\n{line[2:]}"
            else:
                found[-1].output.append(line.rstrip())
        return found


def blocks(text: str, name: str) -> list[Block]:
    """The blocks of a document; refuses those that would never be run."""
    found = [_block(match, text, name) for match in FENCE.finditer(text)]
    fences = sum(line.startswith("```") for line in text.splitlines())
    if fences != 2 * len(found):
        raise Unknown(f"{name}: {fences} fences are not {len(found)} blocks")
    for block in found:
        _refuse_unknown(block)
    return found


def _block(match: re.Match[str], text: str, name: str) -> Block:
    language, _, rest = match["info"].partition(" ")
    title = re.fullmatch(r'title="([^"]+)"', rest.strip())
    comment = (match["comment"] or "").strip().removeprefix("<!--").removesuffix("-->").strip()
    line = text.count("\n", 0, match.start("info")) + 1
    return Block(f"{name}:{line}", language, title and title[1], match["body"], comment)


def _refuse_unknown(block: Block) -> None:
    if block.language not in (*COMMANDS, *DATA, "python"):
        raise Unknown(f"{block.where}: a block of {block.language or 'no language'} is never run")
    if block.language in DATA and re.search(r"^\$ ", block.body, re.MULTILINE):
        raise Unknown(f"{block.where}: a command in a block of {block.language} is never run")
    if block.comment.startswith("not run") and not block.skipped:
        raise Unknown(f"{block.where}: it should say why it is not run")


def documents(root: Path) -> list[Path]:
    """Every document of the project that may hold commands."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]
