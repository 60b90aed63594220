"""Loading a user's Python file: an experiment file, a launcher profile, or the classes that a plan needs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import ModuleType

from rldsl.spec.errors import SpecError

MAIN = "__main__"


def load_user_file(file: Path, name: str | None = None, *, search_path: bool = True) -> ModuleType:
    """Runs a file as the module `name` and returns it; classes that it defines are known from then on.

    Without a name the module is called after the file. As `__main__` it runs like `python FILE` does, and
    `sys.modules` keeps the real main module. With `search_path` the directory of the file is put on `sys.path`, as
    Python does for a script, and stays there: the implementations of the file's classes are imported later.
    """
    if not file.is_file():
        raise SpecError(f"there is no file {file}")
    if file.suffix != ".py":  # data, such as a plan, is never run
        raise SpecError(f"{file} is not a Python file; a saved plan is run with --plan {shlex.quote(str(file))}")
    try:
        code = compile(file.read_bytes(), str(file), "exec")
    except OSError as error:
        raise SpecError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) and error.lineno else 1
        raise SpecError(str(error.args[0] if error.args else error), f"{file}:{line}") from None
    module = ModuleType(name or _module_name(file))
    module.__file__ = str(file)
    if search_path and (folder := str(file.resolve().parent)) not in sys.path:
        sys.path.insert(0, folder)
    real_main = sys.modules.get(MAIN)
    sys.modules[module.__name__] = module
    try:
        exec(code, vars(module))  # noqa: S102 (the file is the user's own)
    finally:
        if module.__name__ == MAIN and real_main is not None:
            sys.modules[MAIN] = real_main
    return module


def _module_name(file: Path) -> str:
    """The name of the file; another one if it would hide a module of Python or of a library."""
    taken = file.stem in sys.modules or file.stem in sys.stdlib_module_names
    return f"experiment_{file.stem}" if taken else file.stem
