"""A user's own file, loaded for the agents and environments that it defines, without running its `main`."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rldsl.spec.errors import SpecError


def load_user_code(file: Path) -> None:
    """Imports a file by its name, or another where a library has it, with its folder on the path as for a script."""
    file = file.resolve()
    taken = file.stem in sys.modules or file.stem in sys.stdlib_module_names
    name = f"experiment_{file.stem}" if taken else file.stem
    sys.path.insert(0, str(file.parent))
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SpecError(f"cannot load {file}: there is no such Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
