"""Optimizer steps on parameters `[M, ...]`: a learning rate, a step count and a gradient norm for each member.

A step changes a tensor of parameters and its optimizer state in place. The state is a dict of tensors, so it can be
checkpointed as it is.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from rldsl.maths.members import per_member

State = Mapping[str, Tensor]


def adam_state(params: Tensor) -> dict[str, Tensor]:
    """First and second moments like `params` and the number of steps `[M]`, all 0."""
    return {"m": torch.zeros_like(params), "v": torch.zeros_like(params), "step": torch.zeros_like(params[:, 0])}


def bias_corrections(step: Tensor, beta1: float = 0.9, beta2: float = 0.999) -> tuple[Tensor, Tensor]:
    """1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t), `[M]`, at step t."""
    return 1 / _bias_correction(beta1, step), _bias_correction(beta2, step).rsqrt()


@torch.no_grad()
def adam(
    params: Tensor,
    grad: Tensor,
    state: State,
    lr: Tensor,
    corrections: tuple[Tensor, Tensor],
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> None:
    """p -= lr * m_hat / (sqrt(v_hat) + eps), with m, v the moving averages of g, g^2 and the hats their division by
    1 - beta^t (Kingma & Ba 2015, arXiv:1412.6980, algorithm 1). `lr` is `[M]` or like `params`."""
    m, v = state["m"], state["v"]
    m_scale, root_v_scale = (per_member(correction, params) for correction in corrections)
    m.lerp_(grad, 1 - beta1)
    v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    params.addcmul_(m / v.sqrt().mul_(root_v_scale).add_(eps), per_member(lr, params) * m_scale, value=-1)


@torch.no_grad()
def decay_weights(params: Tensor, lr: Tensor, weight_decay: float) -> None:
    """p *= 1 - lr * weight_decay: decoupled weight decay, before `adam` in AdamW (Loshchilov & Hutter 2019,
    arXiv:1711.05101)."""
    params.mul_(1 - per_member(lr, params) * weight_decay)


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
    squares = (grad.reshape(len(grad), -1).square().sum(1) for grad in grads.values())
    norm = sum(squares, start=torch.zeros_like(max_norm)).sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return {name: grad * per_member(scale, grad) for name, grad in grads.items()}, norm


def _bias_correction(beta: float, step: Tensor) -> Tensor:
    """1 - beta^t, without the cancellation that costs float32 four digits when beta is near 1."""
    return -(step * math.log(beta)).expm1()
