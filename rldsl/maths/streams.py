"""Random streams: every user of chance in a session has a stream of its own, from the session's seed and a name."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """The stream `name` of a session: independent of all others, the same in a pack as alone."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))))


def stream_state(generator: np.random.Generator) -> dict[str, Any]:
    """The state of a stream as JSON-able data."""
    return dict(generator.bit_generator.state)


def restore_stream(generator: np.random.Generator, state: dict[str, Any]) -> None:
    """Goes on from a saved state."""
    generator.bit_generator.state = state
