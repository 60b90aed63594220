"""Updates of target networks, in place on parameters `[M, ...]`."""

import torch
from torch import Tensor

from rldsl.maths.members import per_member


@torch.no_grad()
def soft_update(target: Tensor, online: Tensor, tau: Tensor) -> None:
    """target += tau * (online - target), `tau` `[M]` (Lillicrap et al. 2016, arXiv:1509.02971); tau = 1 is a
    hard update (Mnih et al. 2015)."""
    target.lerp_(online, per_member(tau, target))
