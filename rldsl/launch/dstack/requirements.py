"""The packages that a machine installs: those of rldsl, its extras, and what the code of the project imports."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from rldsl.spec.errors import PACKAGE

NAMED = re.compile(r"([A-Za-z_]\w*)[\w.]*:[A-Za-z_][\w.-]*")
CUDA_EXTRAS = {"jax": "cuda12"}
"""Packages that need an extra of their own to use a GPU."""


def requirements(sources: Sequence[Path] = (), extras: Collection[str] = (), gpu: bool = False) -> str:
    """Lines for `pip install --requirement`, in the versions of this machine; unpinned if they are not installed here.

    `sources` are the experiment file and its modules. `extras` are those of rldsl that the sessions need.
    """
    needed = {one.name.lower(): one for one in _rldsl(extras)}
    for name in _imported(sources):
        needed.setdefault(name.lower(), Requirement(name))
    if "site-packages" in PACKAGE.parts:
        needed["rldsl"] = Requirement("rldsl")  # it does not go along with the code
    return "".join(f"{_line(one, gpu)}\n" for one in needed.values())


def extras_of(plan: bytes) -> set[str]:
    """The extras of rldsl that the environments of a plan file need."""
    extras = set()
    for node in _dicts(json.loads(plan)):
        if node.get("kind") == "playground":
            extras.add("playground")
        if node.get("backend") == "envpool":
            extras.add("envpool")
    return extras


def _dicts(data: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(data, dict):
        yield data
        data = list(data.values())
    for item in data if isinstance(data, list) else ():
        yield from _dicts(item)


def _rldsl(extras: Collection[str]) -> Iterator[Requirement]:
    """The dependencies of rldsl, and those of its extras."""
    for line in metadata.requires("rldsl") or []:
        one = Requirement(line)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
            yield one


def _imported(sources: Sequence[Path]) -> list[str]:
    """The installed packages that the modules of the project import; modules of the project itself are none."""
    own = {part.removesuffix(".py") for path in sources for part in path.parts[-2:]}
    modules = {module for path in sources for module in _modules(path)}
    distributions = metadata.packages_distributions() if modules else {}
    found = {name for module in modules - own - sys.stdlib_module_names for name in distributions.get(module, ())[:1]}
    return sorted(name for name in found if name != "rldsl" and _published(name))


def _modules(source: Path) -> Iterator[str]:
    """The first names of absolute imports, and of classes and environments that are named as `module:Name`."""
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Constant) and (match := NAMED.fullmatch(str(node.value))):
            yield match[1]


def _published(name: str) -> bool:
    """Whether a package can be installed by name: not if it came from a directory or a URL."""
    return metadata.distribution(name).read_text("direct_url.json") is None


def _line(one: Requirement, gpu: bool) -> str:
    """The requirement in the version that is installed here, without its local part, such as +cpu."""
    extras = {*one.extras, *([CUDA_EXTRAS[one.name]] if gpu and one.name in CUDA_EXTRAS else [])}
    name = f"{one.name}[{','.join(sorted(extras))}]" if extras else one.name
    try:
        return f"{name}=={metadata.version(one.name).partition('+')[0]}"
    except metadata.PackageNotFoundError:
        return f"{name}{one.specifier}"
