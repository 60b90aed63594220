"""An exception of a user's file as one sentence with the line of the file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rldsl.spec.errors import SpecError, line_in, nearest


def user_error(error: Exception, file: Path) -> SpecError:
    """What a command prints if running `file` raised `error`: `exp.py:3: NameError: name 'PP0' is not defined`."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:  # of a module that the file imports
        return SpecError(str(error.msg), f"{error.filename}:{error.lineno}")
    sentence = f"{type(error).__name__}: {_without_path(error)}".removesuffix(": ")
    meant = _meant(error)
    return SpecError(
        f"{sentence}; did you mean {meant}?" if meant else sentence, line_in(error.__traceback__) or str(file)
    )


def _without_path(error: Exception) -> str:
    """The message; of an import, without the path of the module."""
    return re.sub(r" \(\S+\)$", "", str(error)) if isinstance(error, ImportError) else str(error)


def _meant(error: Exception) -> str | None:
    """The name that is most similar to the unknown one: of the imported module, or of the line that failed."""
    if isinstance(error, ImportError):
        wanted, known = re.match(r"cannot import name '(\w+)'", str(error)), dir(sys.modules.get(error.name or ""))
        name = wanted[1] if wanted else None
    else:
        name, known = (error.name, _known_names(error)) if isinstance(error, NameError) else (None, [])
    return next(iter(nearest(name, known, most=1)), None) if name else None


def _known_names(error: Exception) -> list[str]:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return [*trace.tb_frame.f_locals, *trace.tb_frame.f_globals] if trace is not None else []
