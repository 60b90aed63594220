"""Target networks: flat parameters `[M, P]` that follow others, in place."""

import torch
from torch import Tensor

from rldsl.maths.members import per_member


@torch.no_grad()
def soft_update(target: Tensor, online: Tensor, tau: Tensor) -> None:
    """target += tau * (online - target), `tau` `[M]` (Lillicrap et al. 2016, arXiv:1509.02971)."""
    target.lerp_(online, per_member(tau, target))


@torch.no_grad()
def hard_update(target: Tensor, online: Tensor, due: Tensor | None = None) -> None:
    """target = online, of all members or of those that are `due` `[M]` (Mnih et al. 2015)."""
    target.copy_(online if due is None else torch.where(per_member(due, target), online, target))
