"""Euclidean norms that are bit-identical to `numpy.linalg.norm` of single vectors."""

import numpy as np


def norms(vectors: np.ndarray) -> np.ndarray:
    """The norm of each row. `numpy.linalg.norm` with an axis sums in a different order and so rounds differently."""
    lengths: np.ndarray = np.sqrt(np.vecdot(vectors, vectors))
    return lengths
