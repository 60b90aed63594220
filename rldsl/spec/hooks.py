"""Functions of the user that a session calls at log points and at its end, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from rldsl.spec.declared import declare
from rldsl.spec.errors import SpecError
from rldsl.spec.text import matching

HookName = Annotated[str, matching(r"[\w.]+:\w+", "module:function")]
"""`module:function`."""


def hook_name(function: Callable[..., Any], method: str) -> str:
    """The name of a function of the user's experiment file or of a module that it imports."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not callable(function) or module is None or not name.isidentifier():
        raise SpecError(
            f"{method}(...) takes a function that is defined at the top of a file, not {name or function!r}"
        )
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and (module == "__main__" or module.startswith("experiment_")):
        module = Path(file).stem  # the worker loads the experiment file under its own name
    declare(f"{module}:{name}")
    return f"{module}:{name}"
