"""The files of a project that an experiment file imports, found without running them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rldsl.spec.errors import PACKAGE
from rldsl.store.source_text import file_of, read_source

_NAMED = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*")
"""An implementation as specs name it, `module:Class`; it is imported by the worker only."""


def source_files(file: Path, root: Path) -> list[Path]:
    """The experiment file and the modules below `root` that it imports, directly or through one another.

    Imports are found by reading: those that are computed at run time (`importlib.import_module(name)`) are not.
    """
    file, root = file.resolve(), root.resolve()
    bases = _bases(file, root)
    found, left = [file], [file]
    while left:
        for path in _imported(left.pop(), bases):
            if path not in found and path.is_relative_to(root) and not path.is_relative_to(PACKAGE):
                found.append(path)
                left.append(path)
    return found


def _bases(file: Path, root: Path) -> list[Path]:
    """The directories that modules are imported from."""
    paths = [Path(one).resolve() for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    inside = [one for one in paths if one.is_relative_to(root)]
    return list(dict.fromkeys([file.parent, *inside, root, root / "src"]))


def _imported(file: Path, bases: Sequence[Path]) -> Iterator[Path]:
    source = read_source(file)
    for one in source.imports:
        start = [file.parents[one.level - 1]] if one.level else bases
        names = [f"{one.module}.{name}" if one.module else name for name in one.names]
        for name in ([one.module] if one.module else []) + names:
            yield from _files_of(name, start)
    for node in () if source.tree is None else ast.walk(source.tree):
        if isinstance(node, ast.Constant) and (match := _NAMED.fullmatch(str(node.value))):
            yield from _files_of(match[1], bases)


def _files_of(module: str, bases: Sequence[Path]) -> Iterator[Path]:
    """The file of a module and the `__init__.py` of the packages around it."""
    parts = module.split(".")
    for base in bases:
        for length in range(1, len(parts) + 1):
            if (path := file_of(".".join(parts[:length]), base)) is not None:
                yield path.resolve()
