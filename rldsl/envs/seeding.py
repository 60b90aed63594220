"""Seeds of a session's environments."""

import zlib

import numpy as np


def row_seeds(session_seed: int, num_envs: int, stream: str | int = "train") -> list[int]:
    """One seed per environment, derived from the session's seed and the stream's name only: the same in any pack.

    SeedSequence makes neighbouring session seeds, rows and streams independent. The first rows do not depend on
    `num_envs`. Seeds have 31 bits, which environments written in C accept.
    """
    key = zlib.crc32(stream.encode()) if isinstance(stream, str) else stream
    children = np.random.SeedSequence(session_seed, spawn_key=(key,)).spawn(num_envs)
    return [int(child.generate_state(1)[0] >> 1) for child in children]
