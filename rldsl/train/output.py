"""The output of a pack's process: the launcher writes it to the first session's log, this copies it to the others'."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from rldsl.store.files import open_log


class _Copied:
    """A stream whose text also goes to other files."""

    def __init__(self, stream: TextIO, copies: Sequence[TextIO]) -> None:
        self._stream, self._copies = stream, copies

    def write(self, text: str) -> int:
        for copy in self._copies:
            copy.write(text)
            copy.flush()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def copy_output(logs: Sequence[Path]) -> None:
    """From here on, what this process prints also goes to these logs."""
    if logs:
        files = [TextIOWrapper(open_log(log)) for log in logs]
        sys.stdout, sys.stderr = _Copied(sys.stdout, files), _Copied(sys.stderr, files)
