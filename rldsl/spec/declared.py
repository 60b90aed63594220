"""Python modules that the user's own files name or import: only these are used for a `module:Class` in data.

A plan, a session record or a file from the Hub may contain any text. Text is never imported: `Gym("maze:Maze-v0")` in a
Python file of the user *declares* the module `maze`, and the same text in JSON refers to a module that is declared, or
that the user's files have imported already. Everything else is refused.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_names: set[str] = set()
"""Every id and `module:name` that a file of the user passed to a constructor."""


class UndeclaredModule(ImportError):
    """Data names a module that no file of the user declares or imports."""


def declare(name: str) -> None:
    """Records an id or `module:name` of the user's own code."""
    _names.add(name)


def is_declared(name: str) -> bool:
    """Whether the user's own code named exactly this."""
    return name in _names


def undeclared_module(name: str) -> str | None:
    """The module of a `module:name` if it may not be used; None if it may, or if the name has no module."""
    module = name.rpartition(":")[0]
    if not module or module.partition(".")[0] == "gymnasium" or module in sys.modules:
        return None
    return None if any(one.startswith(f"{module}:") for one in _names) else module


def absent_module(name: str) -> str | None:
    """The module of a `module:name` if it does not exist, as far as that is known without an import."""
    module = name.rpartition(":")[0]
    package = module.rpartition(".")[0]
    if not module or module in sys.modules:
        return None
    known = module if not package or package in sys.modules else module.partition(".")[0]
    return None if known in sys.modules or find_spec(known) else known


def resolve(name: str, *, classes: bool = False) -> Any:
    """The object that a `module:name` refers to; None if the module has no such attribute.

    The user's own code must have named exactly this, since the object may be called with anything. With `classes`, for
    callers that then check for a base class, any name in a module that is declared or imported will do.
    Raises `UndeclaredModule`, and the errors of the import of a declared module. A module that is not declared is only
    looked up, without importing anything or calling its `__getattr__`.
    """
    module, _, attribute = name.rpartition(":")
    if not classes and name not in _names:
        raise UndeclaredModule(f"the experiment file does not name {name}")
    if any(one.startswith(f"{module}:") for one in _names):
        return getattr(import_module(module), attribute, None)
    if module not in sys.modules:
        raise UndeclaredModule(f"the experiment file does not import {module}; add `import {module}` to it")
    return vars(sys.modules[module]).get(attribute)
