"""Functions of the C math library, element by element.

Gymnasium's environments call them through `math` and numpy scalars. Numpy's array loops use other implementations,
which differ in the last bit: `x ** 2` of an array is `x * x`, of a scalar it is `pow(x, 2)`.
"""

import math
from itertools import repeat

import numpy as np


def cos(x: np.ndarray) -> np.ndarray:
    """`math.cos` of each element, always in float64."""
    return np.fromiter(map(math.cos, x.tolist()), np.float64, x.size)


def square(x: np.ndarray) -> np.ndarray:
    """`pow(x, 2.0)` of each element of a float64 array of any shape."""
    return np.fromiter(map(math.pow, x.ravel().tolist(), repeat(2.0)), np.float64, x.size).reshape(x.shape)


def square_float32(x: np.ndarray) -> np.ndarray:
    """`powf(x, 2.0f)` of each element of a float32 vector; only numpy's scalars reach that function."""
    return np.array([element**2 for element in x])
