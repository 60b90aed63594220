"""Batch renormalisation (Ioffe 2017, arXiv:1702.03275) of features `[M, B, F]`, as CrossQ has it.

Running statistics are a dict of tensors, and training returns new ones: nothing is changed in
place while gradients are taken.
"""

import torch
from torch import Tensor

State = dict[str, Tensor]

MOMENTUM = 0.01
EPS = 1e-3
R_MAX = 3.0
D_MAX = 5.0
WARMUP = 100_000


def batch_renorm_state(members: int, features: int) -> State:
    """Mean 0 and variance 1, `[M, F]`, after no batch: `batches` `[M]`."""
    return {
        "mean": torch.zeros(members, features),
        "var": torch.ones(members, features),
        "batches": torch.zeros(members),
    }


def batch_renorm_train(
    x: Tensor,
    state: State,
    momentum: float = MOMENTUM,
    eps: float = EPS,
    r_max: float = R_MAX,
    d_max: float = D_MAX,
    warmup: int = WARMUP,
) -> tuple[Tensor, State]:
    """(x - mean_B) / std_B * r + d, and the running statistics with this batch in them; std = sqrt(var + eps).

    r = std_B / std within [1 / r_max, r_max], d = (mean_B - mean) / std within [-d_max, d_max]: without these bounds it
    would be `batch_renorm_eval`, but with gradients through the statistics of the batch. No gradient flows into r, d.
    In the first `warmup` batches r is 1 and d is 0, plain batch normalisation; then it switches at once.
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
    """(x - mean) / sqrt(var + eps) by the running statistics: items of a batch do not touch each other."""
    return (x - state["mean"].unsqueeze(1)) * (state["var"] + eps).rsqrt().unsqueeze(1)
