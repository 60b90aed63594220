"""Losses of on-policy minibatches `[M, B]`: one number per member, `[M]`. Coefficients are `[M]`.

No gradient flows into advantages, targets and old predictions.
"""

import torch
from torch import Tensor

from rldsl.maths.members import member_mean, per_member


def reinforce_loss(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """-mean(log pi(a|s) * A) (Williams 1992; with a baseline, the policy loss of A2C, Mnih et al. 2016)."""
    return -member_mean(log_prob * advantage.detach())


def ppo_clip_loss(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: Tensor) -> Tensor:
    """-mean(min(rho * A, clamp(rho, 1 - clip, 1 + clip) * A)), rho = pi(a|s) / pi_old(a|s)
    (Schulman et al. 2017, arXiv:1707.06347, eq. 7)."""
    ratio, clip, advantage = _ratio(log_prob, old_log_prob), per_member(clip, log_prob), advantage.detach()
    return -member_mean(torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage))


def approximate_kl(log_prob: Tensor, old_log_prob: Tensor) -> Tensor:
    """KL(pi_old || pi) by mean(rho - 1 - log rho): the unbiased, non-negative estimator k3 (Schulman 2020)."""
    log_ratio = log_prob - old_log_prob.detach()
    return member_mean(log_ratio.expm1() - log_ratio)


def clip_fraction(log_prob: Tensor, old_log_prob: Tensor, clip: Tensor) -> Tensor:
    """Fraction of items whose rho lies outside [1 - clip, 1 + clip]."""
    beyond = (_ratio(log_prob, old_log_prob) - 1).abs() > per_member(clip, log_prob)
    return member_mean(beyond.to(log_prob.dtype))


def value_loss(value: Tensor, target: Tensor, scale: Tensor | None = None) -> Tensor:
    """mean((v - target)^2). With `scale` `[M]`, v and target are divided by it first."""
    value, target = _scaled(value, scale), _scaled(target, scale)
    return member_mean((value - target.detach()).square())


def clipped_value_loss(
    value: Tensor, old_value: Tensor, target: Tensor, clip: Tensor, scale: Tensor | None = None
) -> Tensor:
    """mean(max((v - target)^2, (v_old + clamp(v - v_old, -clip, clip) - target)^2)), as in OpenAI Baselines' PPO.
    With `scale` `[M]`, all values are divided by it first, so `clip` is in scaled units."""
    value, old_value, target = (
        _scaled(value, scale),
        _scaled(old_value, scale).detach(),
        _scaled(target, scale).detach(),
    )
    clip = per_member(clip, value)
    near = old_value + (value - old_value).clamp(-clip, clip)
    return member_mean(torch.maximum((value - target).square(), (near - target).square()))


def huber(error: Tensor, delta: float = 1.0) -> Tensor:
    """0.5 * e^2 where |e| <= delta, else delta * (|e| - 0.5 * delta), elementwise (Huber 1964)."""
    size = error.abs()
    near = size.clamp(max=delta)
    return near * (size - 0.5 * near)


def self_imitation_policy_loss(
    log_prob: Tensor, returns: Tensor, value: Tensor, weight: Tensor, clip: float = 1.0, max_nlogp: float = 5.0
) -> Tensor:
    """mean(w * -log pi(a|s) * clamp(R - V, 0, clip)) (Oh et al. 2018, arXiv:1806.05635, eq. 2).

    `weight` `[M, B]` are the importance weights of prioritized replay. As in the authors' code, -log pi is capped at
    `max_nlogp` in the value of the loss but not in its gradient: otherwise rare good actions would not be imitated.
    """
    nlogp = -log_prob
    capped = nlogp + (nlogp.clamp(max=max_nlogp) - nlogp).detach()
    return member_mean(weight * capped * (returns - value).clamp(0.0, clip).detach())


def self_imitation_value_loss(returns: Tensor, value: Tensor, weight: Tensor) -> Tensor:
    """mean(w * 0.5 * max(R - V, 0)^2) (Oh et al. 2018, eq. 3)."""
    return member_mean(weight * 0.5 * (returns.detach() - value).clamp(min=0.0).square())


def entropy_bonus(entropy: Tensor, coefficient: Tensor) -> Tensor:
    """coefficient * mean(H): subtract it from the loss. `entropy` is `[M, ...]`."""
    return coefficient * member_mean(entropy)


def normalize_per_member(x: Tensor, eps: float = 1e-8) -> Tensor:
    """(x - mean) / (std + eps) over the items of each member, with the unbiased std. A single item is unchanged."""
    items = x.flatten(1)
    if items.shape[1] < 2:
        return x
    std, mean = torch.std_mean(items, 1)
    return (x - per_member(mean, x)) / (per_member(std, x) + eps)


def explained_variance(value: Tensor, target: Tensor) -> Tensor:
    """1 - Var(target - v) / Var(target): 1 is perfect, 0 no better than a constant, nan if the target is constant."""
    target = target.flatten(1)
    variance = target.var(1, correction=0)
    unexplained = (target - value.flatten(1)).var(1, correction=0)
    return torch.where(variance > 0, 1 - unexplained / variance, torch.nan)


def _ratio(log_prob: Tensor, old_log_prob: Tensor) -> Tensor:
    return (log_prob - old_log_prob.detach()).exp()


def _scaled(x: Tensor, scale: Tensor | None) -> Tensor:
    return x if scale is None else x / per_member(scale, x)
