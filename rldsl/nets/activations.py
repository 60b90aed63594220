"""Activation functions, by the names that specs use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from rldsl.spec.net import Activation

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "elu": F.elu,
    "selu": F.selu,
    "silu": F.silu,
    "gelu": F.gelu,
}


def activate_in_place(activation: Activation, x: np.ndarray) -> None:
    """The same on a numpy array, for acting: numpy's function if there is one, otherwise torch's on the same memory."""
    if activation == "tanh":
        np.tanh(x, out=x)
    elif activation == "relu":
        np.maximum(x, 0, out=x)
    else:
        x[...] = ACTIVATIONS[activation](torch.from_numpy(x)).numpy()
