"""Source files as Python reads them: a digest that ignores comments, docstrings and formatting, and the imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

LENGTH = 16
"""Hexadecimal digits of a digest of a file."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Import(NamedTuple):
    """`from module import names`, or `import module` without names; `level` counts the dots of a relative import."""

    module: str
    names: tuple[str, ...] = ()
    level: int = 0


@dataclass(frozen=True)
class Source:
    """One source file."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module | None:
        """The parsed module; None for a file that is not Python."""
        if self.path.suffix != ".py":
            return None
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def digest(self) -> str:
        """The same for sources that differ only in comments, docstrings and formatting."""
        return self.text_digest if self.tree is None else digest_of(self.tree.body)

    @cached_property
    def text_digest(self) -> str:
        return _short_hash(self.text)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import, inside of functions too; none that only type checkers see."""
        return () if self.tree is None else tuple(imports_of(self.tree.body))

    def named(self, name: str) -> Definition | None:
        """The class or function of this name at the top level."""
        body = () if self.tree is None else self.tree.body
        return next((one for one in body if isinstance(one, Definition) and one.name == name), None)


def read_source(path: Path) -> Source:
    """A source file, read and parsed again only if it has changed; empty if it cannot be read."""
    try:
        status = path.stat()
        return _read(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return Source(path, "")


@lru_cache(maxsize=4096)
def _read(path: Path, modified: int, size: int) -> Source:
    return Source(path, path.read_text(encoding="utf-8", errors="replace"))


def file_of(module: str, folder: Path) -> Path | None:
    """The file of a module, by its dotted name, in a folder that modules are imported from."""
    path = folder.joinpath(*module.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def imports_of(statements: Iterable[ast.AST]) -> Iterator[Import]:
    """The imports in these statements."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield Import(node.module or "", tuple(alias.name for alias in node.names), node.level)
        elif not _for_type_checkers(node):
            yield from imports_of(ast.iter_child_nodes(node))


def digest_of(statements: Iterable[ast.stmt]) -> str:
    """A digest of statements; the same with every version of Python that parses them to the same tree."""
    parts: list[str] = []
    for statement in statements:
        _write(statement, parts)
    return _short_hash(" ".join(parts))


def _write(node: ast.AST, parts: list[str]) -> None:
    if isinstance(node, ast.Constant):
        parts.append(repr(node.value))
        return
    if _is_text(node) or _for_type_checkers(node):
        return
    parts.append(f"({type(node).__name__}")
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            parts.append(name)
            _write(value, parts)
        elif isinstance(value, list):
            if value:  # newer versions of Python have fields that are empty in older code
                parts.append(f"{name}[")
                for item in value:
                    if isinstance(item, ast.AST):
                        _write(item, parts)
                    else:
                        parts.append(repr(item))
                parts.append("]")
        elif value is not None and name != "type_comment":
            parts.append(f"{name}={value!r}")
    parts.append(")")


def _is_text(node: ast.AST) -> bool:
    """A docstring, or any other text that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _for_type_checkers(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:`, which never runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:LENGTH]
