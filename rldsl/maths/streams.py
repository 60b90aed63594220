"""RNGs: every purpose ('act', 'replay', ...) has its own random stream, derived from the session's seed and a name."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator for one purpose of a session, independent of all others and of the rest of the pack."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))))


def stream_state(generator: np.random.Generator) -> dict[str, Any]:
    """The state of a generator as JSON-serialisable data."""
    return dict(generator.bit_generator.state)


def restore_stream(generator: np.random.Generator, state: dict[str, Any]) -> None:
    """Set a generator to a saved state."""
    generator.bit_generator.state = state
