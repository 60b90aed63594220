"""What `from rldsl import ...` offers: sorted, all there, and all that people are told to import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import ROOT

import rldsl
from rldsl.spec.agent import Agent
from rldsl.spec.environment import Environment
from rldsl.spec.launcher import Launcher
from rldsl.spec.net import Net
from rldsl.spec.optimizer import Optimizer
from rldsl.spec.schedule import Schedule

FAMILIES = (Agent, Environment, Launcher, Net, Optimizer, Schedule)


def order(name: str) -> tuple[int, str]:
    """Constants and abbreviations, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_public_names_are_sorted_and_exist() -> None:
    assert rldsl.__all__ == sorted(set(rldsl.__all__), key=order)
    assert all(hasattr(rldsl, name) for name in rldsl.__all__)


def test_every_kind_and_its_family_is_public() -> None:
    for family in FAMILIES:
        ours = {model.__name__ for model in family.kinds.values() if model.__module__.startswith("rldsl.")}
        assert {family.__name__, *ours} <= set(rldsl.__all__)


def imported(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module == "rldsl":
            yield from (one.name for one in node.names)


def sources() -> list[Path]:
    written = [
        *ROOT.glob("experiments/**/*.py"),
        *ROOT.glob("launchers/*.py"),
        *ROOT.glob("rldsl/cli/templates/*.py.txt"),
    ]
    return [*written, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_people_are_told_to_import_is_public(path: Path) -> None:
    text = path.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL) if path.suffix == ".md" else [text]
    for block in blocks:
        assert set(imported(block)) <= set(rldsl.__all__)
