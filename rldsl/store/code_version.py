"""The version of the code that a session depends on, as a digest of source files.

These are the modules of rldsl that training the session imports (of the packages in `COUNTED`, and the spec classes of
its trial), and the user's own modules. Comments, docstrings, formatting, paths and the experiments that a file declares
do not count. docs/workflow.md describes it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.spec.base import is_ours, nodes
from rldsl.spec.errors import PACKAGE
from rldsl.spec.experiment import Trial
from rldsl.store.source_text import Definition, Import, Source, digest_of, imports_of, read_source
from rldsl.store.user_modules import UserModules

COUNTED = frozenset({"agents", "compile", "envs", "maths", "memory", "nets", "train"})
"""Packages of rldsl whose modules count if training imports them."""
NOT_COUNTED = frozenset({"rldsl.spec.base", "rldsl.spec.experiment", "rldsl.spec.compute"})
"""Modules of spec classes that have no part in what is computed."""
ROOT = "rldsl.train.pack"
KERNELS = frozenset({".h", ".c", ".cpp", ".cu"})
LENGTH = 12
REFERENCE = re.compile(r"([A-Za-z_][\w.]*):[\w.-]+")
"""`module:name`, as in `implementation` or in the id of a Gymnasium environment."""


class SourceFile(NamedTuple):
    """A file of a version: a digest of what counts in it, and its text."""

    digest: str
    source: Source


@dataclass(frozen=True)
class CodeVersion:
    """Source files by name: modules by their dotted name, others by the name of the file."""

    files: Mapping[str, SourceFile]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        lines = "".join(f"{name} {self.files[name].digest}\n" for name in sorted(self.files))
        object.__setattr__(self, "digest", hashlib.sha256(lines.encode()).hexdigest()[:LENGTH])

    def facts(self) -> dict[str, Any]:
        """The version as JSON: for each file the digest of what counts in it, and that of its text."""
        files = {name: [file.digest, file.source.text_digest] for name, file in sorted(self.files.items())}
        return {"digest": self.digest, "files": files}


class CodeVersions:
    """The present version of the code, for the trials of an experiment file."""

    def __init__(self, file: Path | None) -> None:
        self.user = UserModules(file)
        self._known: dict[tuple[frozenset[str], frozenset[str]], CodeVersion] = {}
        self._ours: dict[str, dict[str, SourceFile]] = {}

    def of(self, trial: Trial) -> CodeVersion:
        """The version of the code that trains a trial."""
        classes = {type(node) for node in nodes(trial)}
        ours = {ROOT} | {_implementation(one) for one in classes if is_ours(one)}
        ours |= {base.__module__ for one in classes for base in one.__mro__ if _is_spec(base)}
        named = {f"{one.__module__}:{one.__name__}" for one in classes if not is_ours(one)}
        named |= {_implementation(one) for one in classes if not is_ours(one)}
        named |= set(_references(trial.data()))
        key = frozenset(ours), frozenset(named)
        if key not in self._known:
            self._known[key] = self._version(ours, named)
        return self._known[key]

    def _version(self, ours: Collection[str], named: Collection[str]) -> CodeVersion:
        modules, statements = self.user.computing(named)
        files = {module.name: SourceFile(module.source.digest, module.source) for module in modules}
        imports = [one for module in modules for one in module.source.imports]
        if statements is not None and self.user.main is not None:
            main = self.user.main
            files[main.name] = SourceFile(digest_of(statements), main.source)
            imports += main.source.imports
        wanted = set(_counted(imports))
        for root in sorted({*ours, *wanted}):
            files |= self._closure(root)
        return CodeVersion(files)

    def _closure(self, root: str) -> dict[str, SourceFile]:
        """A module of rldsl and those that it imports; of `module:function` only what that function imports."""
        if root not in self._ours:
            found: dict[str, SourceFile] = {}
            pending = [root]
            while pending:
                name = pending.pop()
                if name not in found and (visited := _visit(name)) is not None:
                    found[name], imported = visited
                    pending += imported
            self._ours[root] = {name.partition(":")[0]: file for name, file in found.items()} | _kernels(found)
        return self._ours[root]


def _visit(name: str) -> tuple[SourceFile, list[str]] | None:
    """A counted module of rldsl and the modules that it imports; None for any other."""
    module, _, part = name.partition(":")
    package = module.split(".")[1:2]
    if not package or (package[0] not in COUNTED and package != ["spec"]) or (path := _file_of(module)) is None:
        return None
    source = read_source(path)
    if package == ["spec"]:  # only what the trial is made of
        return SourceFile(source.digest, source), []
    function = source.named(part)
    if isinstance(function, ast.FunctionDef) and source.tree is not None:  # one of several functions, as in envs.make
        kept = [one for one in source.tree.body if one is function or not isinstance(one, Definition)]
        return SourceFile(digest_of(kept), source), list(_counted(imports_of(kept), module))
    return SourceFile(source.digest, source), list(_counted(source.imports, module))


def _counted(imports: Iterable[Import], module: str = "") -> Iterator[str]:
    for one in imports:
        for name in _our_modules(one, module):
            if name.split(".")[1] in COUNTED:
                yield name


def _our_modules(one: Import, importer: str = "") -> Iterator[str]:
    """The modules of rldsl that an import means, with the packages around them."""
    if one.level:
        parts = importer.split(".")
        base = ".".join([*parts[: len(parts) - one.level], *([one.module] if one.module else [])])
    else:
        base = one.module
    if base == "rldsl.extend":
        homes = _homes_of_extend()
        yield from (homes[name] for name in one.names if name in homes)
    elif base.startswith("rldsl."):
        parts = base.split(".")
        yield from (".".join(parts[:end]) for end in range(2, len(parts) + 1))
        yield from (f"{base}.{name}" for name in one.names if _file_of(f"{base}.{name}") is not None)


@cache
def _homes_of_extend() -> dict[str, str]:
    """The modules that the names of rldsl.extend come from, as its source says: importing it would load torch."""
    tree = read_source(PACKAGE / "extend.py").tree
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)] if tree else []
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _file_of(module: str) -> Path | None:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def _kernels(found: Iterable[str]) -> dict[str, SourceFile]:
    """Source files that are not Python, of the packages that these modules are in."""
    packages = {name.split(".")[1] for name in found}
    sources = {
        f"rldsl.{package}/{path.name}": read_source(path)
        for package in packages & COUNTED
        for path in sorted((PACKAGE / package).iterdir())
        if path.suffix in KERNELS
    }
    return {name: SourceFile(source.digest, source) for name, source in sources.items()}


def _implementation(one: type) -> str:
    """`module:name`; empty for a spec without an implementation."""
    return str(getattr(one, "implementation", ""))


def _is_spec(one: type) -> bool:
    return one.__module__.startswith("rldsl.spec.") and one.__module__ not in NOT_COUNTED


def _references(value: Any) -> Iterator[str]:
    """Texts of the form `module:name` in plain data."""
    if isinstance(value, str):
        if REFERENCE.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
