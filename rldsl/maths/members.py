"""The member axis: every tensor has it first, and nothing here ever mixes two members."""

from torch import Tensor


def per_member(coefficient: Tensor, like: Tensor) -> Tensor:
    """Give a coefficient `[M]` (or `[M, 1]`, `[M, B]`) the trailing axes to broadcast against `like` `[M, ...]`."""
    return coefficient.reshape(coefficient.shape + (1,) * (like.dim() - coefficient.dim()))


def member_mean(x: Tensor) -> Tensor:
    """Mean over everything that belongs to one member: `[M, ...] -> [M]`."""
    return x.flatten(1).mean(1)
