"""Short and long fault tests: how many cases they run, and where the long ones write their numbers.

`make test` runs a few cases of each fault test. `make faults` runs all of them: it sets RLDSL_FAULTS to 1, and
`record` writes what was counted to the file RLDSL_FAULTS_FILE. A smaller RLDSL_FAULTS runs that share of the cases.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

SHARE = float(os.environ.get("RLDSL_FAULTS") or 0)
"""The share of the cases of the long version; 0: the short version."""
FULL = SHARE > 0
"""Whether the long versions run."""


def cases(short: int, full: int) -> int:
    """The number of cases to run now."""
    return max(1, round(full * SHARE)) if FULL else short


def every(short: int, full: int = 1) -> int:
    """One of how many cases is run now."""
    return max(1, round(full / SHARE)) if FULL else short


def record(name: str, **numbers: int | float | str) -> None:
    """Writes the numbers of one fault test, which has passed; the short versions write nothing."""
    file = os.environ.get("RLDSL_FAULTS_FILE")
    if not FULL or not file:
        return
    path = Path(file)  # of this process alone
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, name: numbers}))
