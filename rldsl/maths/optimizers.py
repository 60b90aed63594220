"""Optimizer steps on parameters `[M, ...]`: a learning rate, a step count and a gradient norm for each member.

A step changes parameters and state in place and returns nothing; it runs eagerly or inside a compiled function. The
state is a dict of tensors, so that it can be checkpointed as it is. Where there is a step count, it is the caller's:
tensors that move together share it.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from rldsl.maths.members import once, per_member

State = Mapping[str, Tensor]


def adam_state(params: Tensor) -> dict[str, Tensor]:
    """First and second moments like `params` and the number of steps `[M]`, all 0. For `adam` and `adamw`."""
    return {"m": torch.zeros_like(params), "v": torch.zeros_like(params), "step": torch.zeros_like(params[:, 0])}


@torch.no_grad()
def adam(
    params: Tensor,
    grad: Tensor,
    state: State,
    lr: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> None:
    """p -= lr * m_hat / (sqrt(v_hat) + eps), with m, v the moving averages of g, g^2 and the hats their division by
    1 - beta^t (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1). `step` counts this one; `lr` is `[M]` or as params."""
    m, v, step = state["m"], state["v"], state["step"]
    m.lerp_(grad, 1 - beta1)
    v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    size = per_member(lr, params) * per_member(once(1 / _bias_correction(beta1, step)), params)
    denominator = v.sqrt().mul_(per_member(once(_bias_correction(beta2, step).rsqrt()), params)).add_(eps)
    params.addcmul_(m / denominator, size, value=-1)


@torch.no_grad()
def adamw(
    params: Tensor,
    grad: Tensor,
    state: State,
    lr: Tensor,
    weight_decay: Tensor,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> None:
    """p *= 1 - lr * weight_decay, then `adam` (Loshchilov & Hutter 2019, arXiv:1711.05101). `weight_decay` is `[M]`."""
    params.mul_(1 - per_member(lr, params) * per_member(weight_decay, params))
    adam(params, grad, state, lr, beta1, beta2, eps)


def rmsprop_state(params: Tensor) -> dict[str, Tensor]:
    """The second moment like `params`, 0."""
    return {"v": torch.zeros_like(params)}


@torch.no_grad()
def rmsprop(params: Tensor, grad: Tensor, state: State, lr: Tensor, alpha: float = 0.99, eps: float = 1e-8) -> None:
    """v = alpha * v + (1 - alpha) * g^2; p -= lr * g / (sqrt(v) + eps) (Tieleman & Hinton 2012). `lr` as for `adam`."""
    v = state["v"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    params.addcmul_(grad / v.sqrt().add_(eps), per_member(lr, params), value=-1)


def clip_by_norm(grads: Mapping[str, Tensor], max_norm: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """g * min(1, max_norm / (|g| + 1e-6)) for each member by its own norm over all `grads`, and the norms `[M]` before
    clipping."""
    norms = [torch.linalg.vector_norm(grad.reshape(len(grad), -1), dim=1) for grad in grads.values()]
    norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    scale = once((max_norm / (norm + 1e-6)).clamp(max=1.0))
    return {name: grad * per_member(scale, grad) for name, grad in grads.items()}, norm


def _bias_correction(beta: float, step: Tensor) -> Tensor:
    """1 - beta^t, without the cancellation that costs float32 four digits when beta is near 1."""
    return -(step * math.log(beta)).expm1()
