"""Returns, advantages and one-step targets.

Rollouts are `[M, T, N]` (members, time, environments), minibatches `[M, B]`, coefficients `[M]`. `terminated` and
`ended` are boolean: an episode that `ended` without being `terminated` was truncated, and its return is bootstrapped
from the value of its true final observation.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from rldsl.maths.members import per_member


def discounted_returns(
    reward: Tensor, terminated: Tensor, ended: Tensor, bootstrap_value: Tensor, gamma: Tensor
) -> Tensor:
    """Returns-to-go, G_t = r_t + gamma * G_{t+1}, `[M, T, N]`.

    Where the episode was truncated at t, and at the last step of the rollout, G_{t+1} is `bootstrap_value[t]`: the
    value of the true next observation. Where it terminated, G_{t+1} is 0. Elsewhere `bootstrap_value` is not read.
    """
    target = td_target(reward, bootstrap_value, terminated, gamma)
    ended = _end_of_rollout(ended)
    return _backward_recursion(torch.where(ended, target, reward), _decay(reward, ended, gamma))


def generalized_advantages(
    reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, ended: Tensor, gamma: Tensor, lam: Tensor
) -> Tensor:
    """A_t = delta_t + gamma * lam * (1 - ended_t) * A_{t+1}, `[M, T, N]`, with
    delta_t = r_t + gamma * (1 - terminated_t) * next_value_t - value_t (Schulman et al. 2016, arXiv:1506.02438).

    `next_value[t]` is the value of the true next observation: the final one where the episode ended at t.
    """
    delta = td_target(reward, next_value, terminated, gamma) - value
    return _backward_recursion(delta, _decay(reward, ended, gamma * lam))


def n_step_returns(
    reward: Tensor, next_value: Tensor, terminated: Tensor, ended: Tensor, gamma: Tensor, n: int
) -> Tensor:
    """G_t = r_t + ... + gamma^(k-1) * r_{t+k-1} + gamma^k * next_value_{t+k-1}, `[M, T, N]`, where k is n or, if
    sooner, the number of steps to the end of the episode or of the rollout (Sutton & Barto 2018, eq. 7.1)."""
    if n >= reward.shape[1]:
        return discounted_returns(reward, terminated, ended, next_value, gamma)
    target = td_target(reward, next_value, terminated, gamma)
    ended = _end_of_rollout(ended)
    reward, decay = torch.where(ended, target, reward), _decay(reward, ended, gamma)
    result = target
    for _ in range(n - 1):
        result = torch.addcmul(reward, decay, _later(result, 1))
    return result


def td_target(reward: Tensor, next_value: Tensor, terminated: Tensor, gamma: Tensor) -> Tensor:
    """r + gamma * (1 - terminated) * next_value. `gamma` is `[M]`, or `[M, B]` with a discount gamma^n per item."""
    return torch.addcmul(reward, per_member(gamma, reward), next_value.masked_fill(terminated, 0.0))


def q_learning_target(reward: Tensor, next_q: Tensor, terminated: Tensor, gamma: Tensor) -> Tensor:
    """r + gamma * (1 - terminated) * max_a q(s', a), `next_q` `[M, B, A]` (Watkins 1989; Mnih et al. 2015)."""
    return td_target(reward, next_q.amax(-1), terminated, gamma)


def double_q_target(reward: Tensor, next_q: Tensor, next_q_online: Tensor, terminated: Tensor, gamma: Tensor) -> Tensor:
    """r + gamma * (1 - terminated) * q(s', argmax_a q_online(s', a)) (van Hasselt et al. 2016, arXiv:1509.06461)."""
    next_action = next_q_online.argmax(-1, keepdim=True)
    return td_target(reward, next_q.gather(-1, next_action).squeeze(-1), terminated, gamma)


def expected_soft_value(q: Tensor, log_probs: Tensor, alpha: Tensor) -> Tensor:
    """sum_a pi(a|s) * (q(s, a) - alpha * log pi(a|s)), `[M, B, A] -> [M, B]` (Christodoulou 2019, arXiv:1910.07207)."""
    return (log_probs.exp() * (q - per_member(alpha, q) * log_probs)).sum(-1)


def _backward_recursion(x: Tensor, decay: Tensor) -> Tensor:
    """y_t = x_t + decay_t * y_{t+1}, with y_T = 0, along axis 1.

    A parallel scan (Hillis & Steele 1986): each step is an affine map and affine maps compose, so log2(T) operations on
    `[M, T, N]` replace T operations on `[M, N]`.
    """
    span = 1
    while span < x.shape[1]:
        x = torch.addcmul(x, decay, _later(x, span))
        decay = decay * _later(decay, span)
        span *= 2
    return x


def _later(x: Tensor, steps: int) -> Tensor:
    """x_{t+steps} at t, and 0 beyond the end of the rollout."""
    return pad(x[:, steps:], (0, 0, 0, steps))


def _decay(reward: Tensor, ended: Tensor, factor: Tensor) -> Tensor:
    return per_member(factor, reward).expand_as(reward).masked_fill(ended, 0.0)


def _end_of_rollout(ended: Tensor) -> Tensor:
    """`ended`, and True at the last step of the rollout."""
    return torch.cat((ended[:, :-1], torch.ones_like(ended[:, -1:])), 1)
