"""Ctrl-C while the package is imported, which takes a second: the program ends without a traceback.

The first import of the package; `imported` undoes it.
"""

from __future__ import annotations

import sys
from types import TracebackType

_before = sys.excepthook


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, KeyboardInterrupt):
        _before(kind, error, trace)


def imported() -> None:
    """Everything is imported: from now on exceptions are printed as before."""
    if sys.excepthook is _hook:
        sys.excepthook = _before


sys.excepthook = _hook
