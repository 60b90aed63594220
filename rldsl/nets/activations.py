"""The non-linearities, by the names that specs use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  (as all the world calls it)

from rldsl.spec.net import Activation


def tanh(x: Tensor) -> Tensor:
    """As the sigmoid that it is where it is compiled: the compiler's own takes ten times as long, to the last digit."""
    return 2 * torch.sigmoid(2 * x) - 1 if torch.compiler.is_compiling() else torch.tanh(x)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "tanh": tanh,
    "relu": torch.relu,
    "elu": F.elu,
    "selu": F.selu,
    "silu": F.silu,
    "gelu": F.gelu,
}


def activate_in_place(activation: Activation, x: np.ndarray) -> None:
    """The same on a numpy array, for acting: numpy's own functions where it has them, else torch's on its memory."""
    if activation == "tanh":
        np.tanh(x, out=x)
    elif activation == "relu":
        np.maximum(x, 0, out=x)
    else:
        x[...] = ACTIVATIONS[activation](torch.from_numpy(x)).numpy()
