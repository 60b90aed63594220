"""The member axis: every tensor has it first, and nothing here ever mixes two members."""

import torch
from torch import Tensor

REDUCED = 16
"""Elements from which inductor computes a reduction as one instead of unrolling it."""


def per_member(coefficient: Tensor, like: Tensor) -> Tensor:
    """Give a coefficient `[M]` (or `[M, 1]`, `[M, B]`) the trailing axes to broadcast against `like` `[M, ...]`."""
    return coefficient.reshape(coefficient.shape + (1,) * (like.dim() - coefficient.dim()))


def member_mean(x: Tensor) -> Tensor:
    """Mean over everything that belongs to one member: `[M, ...] -> [M]`."""
    return x.flatten(1).mean(1)


def once(coefficient: Tensor) -> Tensor:
    """The coefficient `[M]` as it is; compiled code computes it once, and not again for every element that it scales.

    Inductor writes what leads to a number into the loop that uses it, where no compiler can lift it out; the result of
    a reduction it keeps.
    """
    if not torch.compiler.is_compiling():
        return coefficient
    return coefficient.unsqueeze(1).expand(-1, REDUCED).amax(1)
