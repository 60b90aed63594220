"""Where everything of a session lies, in one place."""

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


def provenance_name(life: int) -> str:
    return _numbered("provenance", life, "json")


def diff_name(life: int) -> str:
    return _numbered("tree", life, "diff")


def trial_of(name: str) -> str | None:
    """The trial's hash in the name of its directory; None for a foreign name."""
    match = _TRIAL_NAME.fullmatch(name)
    return match[1] if match else None


def seed_of(name: str) -> int | None:
    """The seed in the name of its directory; None for a foreign name."""
    match = _SEED_NAME.fullmatch(name)
    return int(match[1]) if match else None


def _numbered(stem: str, number: int, suffix: str) -> str:
    return f"{stem}.{suffix}" if number == 1 else f"{stem}-{number}.{suffix}"
