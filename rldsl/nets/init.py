"""Weight initialisation, for each member from its own RNG, so that it does not depend on the rest of the pack.

Weights are drawn and orthogonalised in float64, then rounded to float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rldsl.nets.layout import Layout
from rldsl.spec.net import Activation, Init

Floats = NDArray[np.float32]
Arrays = dict[str, Floats]
"""The parameters of one member."""

# As torch.nn.init.calculate_gain; activations that it does not know (elu, silu, gelu) take sqrt(2), as relu does.
_GAINS = {"tanh": 5 / 3, "selu": 3 / 4}


def hidden_gain(init: Init, activation: Activation) -> float:
    """The gain of a hidden layer. Orthogonal initialisation uses sqrt(2) for every activation, as is usual for PPO."""
    return math.sqrt(2) if init == "orthogonal" else _GAINS.get(activation, math.sqrt(2))


def draw_weight(rng: np.random.Generator, init: Init, fan_in: int, fan_out: int, gain: float) -> Floats:
    """A weight matrix `[fan_in, fan_out]`, for x @ W. `init="torch"` ignores the gain."""
    return _WEIGHTS[init](rng, fan_in, fan_out, gain).astype(np.float32)


def draw_bias(rng: np.random.Generator, init: Init, fan_in: int, fan_out: int) -> Floats:
    """A bias `[1, fan_out]`: 0, except with `init="torch"`."""
    if init == "torch":
        return _torch_uniform(rng, fan_in, (1, fan_out)).astype(np.float32)
    return np.zeros((1, fan_out), np.float32)


def stack_members(layout: Layout, members: Iterable[Mapping[str, Floats]]) -> Tensor:
    """The flat parameters `[M, P]` of all members."""
    rows = [np.concatenate([member[name].ravel() for name in layout.names]) for member in members]
    return torch.from_numpy(np.stack(rows))


def _orthogonal(rng: np.random.Generator, fan_in: int, fan_out: int, gain: float) -> np.ndarray:
    """Orthonormal rows or columns, whichever are fewer, uniformly distributed (Saxe et al. 2014, arXiv:1312.6120)."""
    tall = rng.standard_normal((max(fan_in, fan_out), min(fan_in, fan_out)))
    q, r = np.linalg.qr(tall)
    q *= gain * np.sign(np.diag(r))
    return q if fan_in >= fan_out else q.T


def _xavier(rng: np.random.Generator, fan_in: int, fan_out: int, gain: float) -> np.ndarray:
    """U(-b, b), b = gain * sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio 2010, eq. 16)."""
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, (fan_in, fan_out))


def _he(rng: np.random.Generator, fan_in: int, fan_out: int, gain: float) -> np.ndarray:
    """N(0, gain^2 / fan_in) (He et al. 2015, arXiv:1502.01852, eq. 10)."""
    return rng.normal(0.0, gain / math.sqrt(fan_in), (fan_in, fan_out))


def _torch(rng: np.random.Generator, fan_in: int, fan_out: int, gain: float) -> np.ndarray:
    return _torch_uniform(rng, fan_in, (fan_in, fan_out))


def _torch_uniform(rng: np.random.Generator, fan_in: int, shape: tuple[int, ...]) -> np.ndarray:
    """U(-b, b), b = 1 / sqrt(fan_in): the default of `torch.nn.Linear`."""
    bound = 1 / math.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape)


_WEIGHTS: dict[Init, Callable[[np.random.Generator, int, int, float], np.ndarray]] = {
    "orthogonal": _orthogonal,
    "xavier": _xavier,
    "he": _he,
    "torch": _torch,
}
