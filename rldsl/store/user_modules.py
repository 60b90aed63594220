"""The user's own modules: those that an experiment file imports and that are not installed packages."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rldsl.spec.errors import PACKAGE
from rldsl.store.experiment_slice import computing_statements
from rldsl.store.source_text import Import, Source, file_of, read_source

INSTALLED = frozenset({"site-packages", "dist-packages"})
HARMLESS = frozenset({"rldsl", "__future__"})
"""Imports that a module of mere settings has, beside the standard library."""


@dataclass(frozen=True)
class Module:
    """A module of the user."""

    name: str
    path: Path

    @property
    def source(self) -> Source:
        return read_source(self.path)


class UserModules:
    """The modules around an experiment file; without a file, those that can be imported by name."""

    def __init__(self, file: Path | None) -> None:
        self.main = None if file is None else Module(file.name, file.resolve())
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        folders = [*([self.main.path.parent] if self.main else []), Path.cwd(), *(Path(one) for one in paths if one)]
        self.folders = [folder.resolve() for folder in folders]
        self._found: dict[str, Module | None] = {}

    def computing(self, named: Collection[str]) -> tuple[list[Module], list[ast.stmt] | None]:
        """The modules that can change what is computed, and the statements of the experiment file that can.

        `named` are `module:name` that a trial refers to. A module counts if it is named, or if it or a module that it
        imports needs more than rldsl's settings and the standard library. The statements are None if none counts.
        """
        roots = [(self.find(one.partition(":")[0]), one.partition(":")[2]) for one in sorted(named)]
        chosen: dict[Module, None] = {}
        for module, _ in roots:
            if module is not None and not self._is_main(module):
                chosen |= dict.fromkeys(self._reached(module))
        own = {name for module, name in roots if module is not None and self._is_main(module)}
        if self.main is None:
            return sorted(chosen, key=lambda one: one.name), None
        for module in self._reached(self.main):
            if not self._is_main(module) and self._computes(module):
                chosen |= dict.fromkeys(self._reached(module))
        statements = None
        if own or self._computes(self.main):
            statements = computing_statements(self.main.source, own) or None
        others = [module for module in chosen if not self._is_main(module)]
        return sorted(others, key=lambda one: one.name), statements

    def find(self, name: str) -> Module | None:
        """The user's module of this dotted name; None if it is of rldsl, of Python, installed, or does not exist."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> Module | None:
        top = name.partition(".")[0]
        if self.main is not None and name in (self.main.path.stem, f"experiment_{self.main.path.stem}", "__main__"):
            return self.main
        if top in HARMLESS or top in sys.stdlib_module_names:
            return None
        for folder in [*self.folders, *self._editable(top)]:
            path = file_of(name, folder)
            if path is not None and _is_users(path):
                return Module(name, path)
        return None

    @staticmethod
    def _editable(top: str) -> list[Path]:
        """The folder of a package of the user that is installed in place, or on `sys.path` for another reason."""
        try:
            spec = find_spec(top)
        except (ImportError, ValueError, AttributeError):
            return []
        origin = spec.origin if spec else None
        if origin is None or not origin.endswith(".py"):
            return []
        path = Path(origin).resolve()
        return [path.parents[1] if path.name == "__init__.py" else path.parent]

    def _imported(self, module: Module) -> list[Module]:
        found = (self.find(name) for one in module.source.imports for name in self._names(one, module))
        return [one for one in found if one is not None and one != module]

    @staticmethod
    def _names(one: Import, importer: Module) -> Iterable[str]:
        """The modules that an import may mean, with the packages around them."""
        base = one.module
        if one.level:
            parts = importer.name.split(".")
            if importer.path.name == "__init__.py":
                parts.append("")
            base = ".".join([*parts[: len(parts) - one.level], *([one.module] if one.module else [])])
        pieces = base.split(".") if base else []
        yield from (".".join(pieces[:end]) for end in range(1, len(pieces) + 1))
        yield from (f"{base}.{name}" if base else name for name in one.names)

    def _reached(self, module: Module) -> list[Module]:
        """A module and everything of the user that it imports."""
        reached: dict[Module, None] = {}
        pending = [module]
        while pending:
            one = pending.pop()
            if one not in reached:
                reached[one] = None
                pending += self._imported(one)
        return list(reached)

    def _computes(self, module: Module) -> bool:
        return any(self._needs_more(one) for one in self._reached(module))

    def _needs_more(self, module: Module) -> bool:
        """Whether a module imports something that is no setting: `rldsl.extend`, numpy, gymnasium, torch, ..."""
        for one in module.source.imports:
            top = one.module.partition(".")[0]
            if one.level or self.find(one.module) is not None:
                continue
            if one.module != "rldsl" and (top == "rldsl" or top not in sys.stdlib_module_names | HARMLESS):
                return True
        return False

    def _is_main(self, module: Module) -> bool:
        return self.main is not None and module.path == self.main.path


def _is_users(path: Path) -> bool:
    return not INSTALLED & set(path.parts) and PACKAGE not in path.parents
