"""A user's own file, loaded for the agents and environments that it defines, without running its `main`."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rldsl.spec.errors import SpecError


def load_user_code(file: Path) -> None:
    """Imports a file under its own name, with its folder on the path as Python has it for a script."""
    file = file.resolve()
    sys.path.insert(0, str(file.parent))
    spec = spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SpecError(f"cannot load {file}: there is no such Python file")
    module = module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
