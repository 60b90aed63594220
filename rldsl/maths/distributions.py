"""Action distributions as functions of their parameters.

Noise is always an argument: every member has its own RNG. The first axis is the member axis; the last axis is that of
the action (logits of A actions, or A dimensions).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rldsl.maths.members import per_member

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def categorical_log_prob(logits: Tensor, action: Tensor) -> Tensor:
    """log softmax(logits)_action, `[..., A], [...] -> [...]`."""
    return logits.log_softmax(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)


def categorical_entropy(logits: Tensor) -> Tensor:
    """-sum_a p_a * log p_a, `[..., A] -> [...]`. An invalid action (logit -inf) contributes 0."""
    log_probs = logits.log_softmax(-1)
    return -(log_probs.exp() * log_probs.clamp(min=torch.finfo(logits.dtype).min)).sum(-1)


def gaussian_log_prob(mean: Tensor, log_std: Tensor, action: Tensor) -> Tensor:
    """sum over the last axis of -0.5 * ((a - mean) / std)^2 - log std - 0.5 * log(2 pi), `[..., A] -> [...]`.
    A state-independent `log_std` is `[M, 1, A]`."""
    z = (action - mean) * (-log_std).exp()
    return (-0.5 * z.square() - log_std - _HALF_LOG_TWO_PI).sum(-1)


def gaussian_entropy(log_std: Tensor) -> Tensor:
    """sum over the last axis of log std + 0.5 * log(2 pi e), `[..., A] -> [...]`."""
    return (log_std + (0.5 + _HALF_LOG_TWO_PI)).sum(-1)


def squashed_gaussian_sample(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """tanh(x) and x = mean + std * noise, `[..., A]`, noise standard normal. `squashed_gaussian_log_prob` takes x."""
    pre_tanh = torch.addcmul(mean, log_std.exp(), noise)
    return pre_tanh.tanh(), pre_tanh


def squashed_gaussian_log_prob(mean: Tensor, log_std: Tensor, pre_tanh: Tensor) -> Tensor:
    """log N(x) - sum log(1 - tanh(x)^2), the log-density of tanh(x), `[..., A] -> [...]` (Haarnoja et al. 2018,
    arXiv:1812.05905, app. C), with log(1 - tanh(x)^2) = 2 * (log 2 - x - softplus(-2x)), which does not underflow."""
    log_det = 2 * (math.log(2) - pre_tanh - softplus(-2 * pre_tanh))
    return gaussian_log_prob(mean, log_std, pre_tanh) - log_det.sum(-1)


def epsilon_greedy_probabilities(q: Tensor, epsilon: Tensor) -> Tensor:
    """epsilon / A + (1 - epsilon) * [a = argmax q], `[..., A]`. `epsilon` is `[M]` or `[M, N]`."""
    epsilon = per_member(epsilon, q)
    greedy = torch.zeros_like(q).scatter(-1, q.argmax(-1, keepdim=True), 1.0)
    return epsilon / q.shape[-1] + (1 - epsilon) * greedy


def boltzmann_probabilities(q: Tensor, temperature: Tensor) -> Tensor:
    """softmax(q / temperature), `[..., A]`. `temperature` is `[M]` or `[M, N]`."""
    return (q / per_member(temperature, q)).softmax(-1)
