"""Names of the files and directories of a session."""

from __future__ import annotations

import re

SESSION = "session.json"
CONFIG = "config.gin"
JOURNAL = "journal.jsonl"
METRICS = "metrics.csv"
TENSORBOARD = "tb"
CHECKPOINTS = "checkpoints"
LOG = "log.txt"
ALIVE = "alive.json"
LOCK = "lock"

_SEED_NAME = re.compile(r"seed-(0|[1-9][0-9]*)")
_TRIAL_NAME = re.compile(r".+-([^-]+)")


def provenance_name(number: int) -> str:
    return _numbered("provenance", number, "json")


def diff_name(number: int) -> str:
    return _numbered("tree", number, "diff")


def trial_of(name: str) -> str | None:
    """The trial's id in the name of its directory; None if the name is not that of a trial."""
    match = _TRIAL_NAME.fullmatch(name)
    return match[1] if match else None


def seed_of(name: str) -> int | None:
    """The seed in the name of a session's directory; None if the name is not that of a session."""
    match = _SEED_NAME.fullmatch(name)
    return int(match[1]) if match else None


def _numbered(stem: str, number: int, suffix: str) -> str:
    return f"{stem}.{suffix}" if number == 1 else f"{stem}-{number}.{suffix}"
