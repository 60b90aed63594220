"""Seeds of the rows of a session."""

import zlib

import numpy as np


def row_seeds(session_seed: int, num_envs: int, stream: str | int = "train") -> list[int]:
    """One seed per row, from the session's seed and the stream's name alone: the same in a pack as alone.

    SeedSequence keeps neighbouring session seeds, rows and streams independent, and the first rows of a larger
    session are those of a smaller one. Seeds have 31 bits, so that environments written in C can take them.
    """
    key = zlib.crc32(stream.encode()) if isinstance(stream, str) else stream
    children = np.random.SeedSequence(session_seed, spawn_key=(key,)).spawn(num_envs)
    return [int(child.generate_state(1)[0] >> 1) for child in children]
