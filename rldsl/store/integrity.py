"""Whether the files of a session are what its processes wrote."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from rldsl.store.session_state import SessionState


def metrics_damage(metrics: Path, state: SessionState) -> str | None:
    """A sentence if metrics.csv differs from the digest that was journalled when the session ended.

    None while a session runs, if it was killed, or if an earlier version wrote its journal: then nothing is recorded.
    """
    if state.metrics_sha256 is None or state.state == "running":
        return None
    try:
        with metrics.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{metrics.name} cannot be read: {(error.strerror or str(error)).lower()}"
    return None if digest == state.metrics_sha256 else f"{metrics.name} was changed after the session ended"


class MetricsCheck:
    """Checks the metrics of many sessions, up to a number of bytes: a listing of thousands must stay fast."""

    MOST_BYTES = 256_000_000

    def __init__(self) -> None:
        self.left = self.MOST_BYTES

    def damage(self, metrics: Path, state: SessionState) -> str | None:
        """`metrics_damage`, unless too much was read already."""
        if state.metrics_sha256 is None or self.left <= 0:
            return None
        with suppress(OSError):
            self.left -= metrics.stat().st_size
        return metrics_damage(metrics, state)
