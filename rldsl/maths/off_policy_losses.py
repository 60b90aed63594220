"""Losses of replayed minibatches: one number per member, `[M]`. No gradient flows into targets and weights.

Items are `[M, B]`, values of all actions `[M, B, A]`, those of C critics `[M, C, B]` and `[M, C, B, A]`.
"""

from typing import Literal

from torch import Tensor

from rldsl.maths.losses import huber
from rldsl.maths.members import member_mean, per_member


def huber_td_loss(q: Tensor, target: Tensor, weight: Tensor, delta: float = 1.0) -> Tensor:
    """mean(w * huber(q - target)) (Mnih et al. 2015), w the importance weights of prioritized replay, or ones."""
    return member_mean(weight.detach() * huber(q - target.detach(), delta))


def critics_loss(q: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """sum_c mean_b(w * 0.5 * (q_c - target)^2), `q` `[M, C, B]`, target and weight `[M, B]`
    (Haarnoja et al. 2018, arXiv:1812.05905, eq. 5)."""
    error = 0.5 * (q - target.detach().unsqueeze(1)).square()
    return (error if weight is None else error * weight.detach().unsqueeze(1)).mean(-1).sum(1)


def combine_critics(q: Tensor, how: Literal["min", "mean"] = "min") -> Tensor:
    """One value from C critics, `[M, C, ...] -> [M, ...]`: the minimum counters overestimation (Fujimoto et al. 2018,
    arXiv:1802.09477); the mean avoids its underestimation, which can hurt with discrete actions."""
    return q.amin(1) if how == "min" else q.mean(1)


def soft_actor_loss(log_prob: Tensor, q: Tensor, alpha: Tensor) -> Tensor:
    """mean(alpha * log pi(a|s) - q(s, a)), a ~ pi reparameterised; all `[M, B]`, `alpha` `[M]` (Haarnoja et al. 2018,
    eq. 9)."""
    return member_mean(per_member(alpha.detach(), log_prob) * log_prob - q)


def expected_soft_actor_loss(log_probs: Tensor, q: Tensor, alpha: Tensor) -> Tensor:
    """mean_b(sum_a pi(a|s) * (alpha * log pi(a|s) - q(s, a))), `[M, B, A]` (Christodoulou 2019, arXiv:1910.07207)."""
    cost = per_member(alpha.detach(), q) * log_probs - q.detach()
    return member_mean((log_probs.exp() * cost).sum(-1))


def temperature_loss(log_alpha: Tensor, entropy: Tensor, target_entropy: Tensor) -> Tensor:
    """log alpha * mean(H - target), which lowers alpha while the entropy is above its target (Haarnoja et al. 2018,
    eq. 18, with log alpha for alpha as in the authors' code). `log_alpha` and `target_entropy` are `[M]`; `entropy`
    `[M, B]` is the entropy in each state, or -log pi(a|s) of sampled actions."""
    return log_alpha * member_mean(entropy.detach() - per_member(target_entropy, entropy))
