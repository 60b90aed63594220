"""Actions from what an actor says, in numpy. `rldsl.maths.distributions` has the same in torch, and the densities.

Noise is an argument: draw it for a whole rollout at once, each member's from its own stream.
"""

from __future__ import annotations

import numpy as np

from rldsl.nets.acting import NumpyPolicy
from rldsl.nets.heads import Gaussian


def gumbel_noise(uniform: np.ndarray) -> np.ndarray:
    """-log(-log u), u uniform in [0, 1): `sample`'s noise for logits."""
    limits = np.finfo(uniform.dtype)
    noise = np.clip(uniform, limits.tiny, 1 - limits.epsneg)
    np.log(noise, out=noise)
    np.negative(noise, out=noise)
    np.log(noise, out=noise)
    return np.negative(noise, out=noise)


def sample(policy: NumpyPolicy, noise: np.ndarray) -> np.ndarray:
    """argmax_a(logits_a + noise_a) `[M, N]`, noise as `gumbel_noise` makes it (Gumbel 1954; faster here than inverting
    the cumulative distribution, even for two actions), or mean + std * noise `[M, N, A]`, noise standard normal."""
    if isinstance(policy, Gaussian):
        actions = np.exp(policy.log_std) * noise
        actions += policy.mean
        return actions
    return (policy + noise).argmax(-1)


def explorations(uniform: np.ndarray, epsilon: np.ndarray, actions: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether not the best action is taken but any, with probability epsilon, and which: where uniform falls below
    epsilon, its place there chooses among the actions."""
    place = np.minimum(uniform / np.maximum(epsilon, np.finfo(np.float32).tiny), 1)
    return uniform < epsilon, np.minimum((place * actions).astype(np.int64), actions - 1)


def greedy(policy: NumpyPolicy) -> np.ndarray:
    """The most probable action: argmax_a(logits_a) `[M, N]`, or the mean `[M, N, A]`."""
    return policy.mean if isinstance(policy, Gaussian) else policy.argmax(-1)
