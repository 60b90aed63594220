"""Every third-party package that rldsl imports is declared in pyproject.toml, and every declared one is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "functorch": "torch",
    "gin": "gin-config",
    "mujoco_playground": "playground",
    "pydantic_core": "pydantic",  # pydantic requires one exact version of it
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Distributions that are not named like the module that they provide."""
IN_EXTRAS = {"rldsl/envs/playground.py": "playground"}
"""Modules that may import packages of an extra at module level, because they are only imported if it is installed."""
OPTIONAL = {"pandas"}
"""Packages that are used if they happen to be installed."""


class Import(NamedTuple):
    """A third-party import in rldsl."""

    distribution: str
    file: str
    line: int
    in_function: bool


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    """Names of distributions in a list of requirements."""
    names = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {normalized(name[0]) for name in names if name}


def imports() -> Iterator[Import]:
    for path in sorted((ROOT / "rldsl").rglob("*.py")):
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            for module in imported_modules(node):
                name = DISTRIBUTIONS.get(module, module)
                file = str(path.relative_to(ROOT))
                yield Import(normalized(name), file, node.lineno, id(node) in inside)


def imported_modules(node: ast.AST) -> list[str]:
    """Top-level names of the third-party modules that a statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        names = [node.module]
    else:
        return []
    tops = {name.partition(".")[0] for name in names}
    return sorted(tops - sys.stdlib_module_names - {"rldsl"})


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_import_is_declared(project: dict[str, object]) -> None:
    required = declared(project["dependencies"])
    extras = {name: declared(listed) for name, listed in project["optional-dependencies"].items() if name != "dev"}
    undeclared = []
    for found in imports():
        allowed = required | extras.get(IN_EXTRAS.get(found.file, ""), set())
        if found.in_function:
            allowed = allowed.union(OPTIONAL, *extras.values())
        if found.distribution not in allowed:
            undeclared.append(f"{found.file}:{found.line} imports {found.distribution}")
    assert not undeclared


def test_every_dependency_is_imported(project: dict[str, object]) -> None:
    used = {found.distribution for found in imports()}
    assert declared(project["dependencies"]) - used == set()


def test_the_lock_file_has_hashes_of_every_version_in_the_constraints() -> None:
    constraints = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    locked: dict[str, int] = {}
    for line in (ROOT / "requirements-lock.txt").read_text().splitlines():
        if "==" in line:
            locked[line.removesuffix(" \\")] = 0
        elif re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line):
            locked[list(locked)[-1]] += 1
    assert list(locked) == constraints, "run `make lock`"
    assert all(locked.values())
