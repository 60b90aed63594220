"""Distances in the bits of `numpy.linalg.norm` of a single vector."""

import numpy as np


def norms(vectors: np.ndarray) -> np.ndarray:
    """Of each row. With an axis, numpy's own norm sums otherwise than for a single vector, and so rounds otherwise."""
    return np.sqrt(np.vecdot(vectors, vectors))
