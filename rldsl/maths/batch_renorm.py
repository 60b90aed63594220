"""Batch renormalisation (Ioffe 2017, arXiv:1702.03275) of features `[M, B, F]`, as CrossQ uses it.

Running statistics `mean` `[M, F]`, `var` `[M, F]` and `batches` `[M]` are a dict of tensors; training returns new ones
and changes nothing in place, so that it can run inside `torch.func.grad`.
"""

import torch
from torch import Tensor

State = dict[str, Tensor]

MOMENTUM = 0.01
EPS = 1e-3
R_MAX = 3.0
D_MAX = 5.0
WARMUP = 100_000


def batch_renorm_train(
    x: Tensor,
    state: State,
    momentum: float = MOMENTUM,
    eps: float = EPS,
    r_max: float = R_MAX,
    d_max: float = D_MAX,
    warmup: int = WARMUP,
) -> tuple[Tensor, State]:
    """(x - mean_B) / std_B * r + d, and the updated running statistics; std = sqrt(var + eps).

    r = std_B / std clamped to [1 / r_max, r_max] and d = (mean_B - mean) / std clamped to [-d_max, d_max], without
    gradients through r and d. For the first `warmup` batches r = 1 and d = 0, which is plain batch normalisation.
    """
    mean = x.mean(1)
    var = (x - mean.unsqueeze(1)).square().mean(1)
    std, running = (var + eps).sqrt(), (state["var"] + eps).sqrt()
    cold = (state["batches"] < warmup).unsqueeze(1)
    r = (std / running).clamp(1 / r_max, r_max).masked_fill(cold, 1.0).detach()
    d = ((mean - state["mean"]) / running).clamp(-d_max, d_max).masked_fill(cold, 0.0).detach()
    normal = (x - mean.unsqueeze(1)) * (r / std).unsqueeze(1) + d.unsqueeze(1)
    return normal, {
        "mean": torch.lerp(state["mean"], mean.detach(), momentum),
        "var": torch.lerp(state["var"], var.detach(), momentum),
        "batches": state["batches"] + 1,
    }


def batch_renorm_eval(x: Tensor, state: State, eps: float = EPS) -> Tensor:
    """(x - mean) / sqrt(var + eps) with the running statistics."""
    return (x - state["mean"].unsqueeze(1)) * (state["var"] + eps).rsqrt().unsqueeze(1)
