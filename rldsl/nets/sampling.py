"""Sampling actions from policy outputs in numpy; log-probabilities are in `rldsl.maths.distributions`.

Noise is an argument: it is drawn for a whole rollout at once, for each member with its own RNG.
"""

from __future__ import annotations

import numpy as np

from rldsl.nets.acting import NumpyPolicy
from rldsl.nets.heads import Gaussian


def gumbel_noise(uniform: np.ndarray) -> np.ndarray:
    """-log(-log u), u uniform in [0, 1): the noise that `sample` takes for logits."""
    limits = np.finfo(uniform.dtype)
    noise: np.ndarray = np.clip(uniform, limits.tiny, 1 - limits.epsneg)
    np.log(noise, out=noise)
    np.negative(noise, out=noise)
    np.log(noise, out=noise)
    np.negative(noise, out=noise)
    return noise


def sample(policy: NumpyPolicy, noise: np.ndarray) -> np.ndarray:
    """argmax_a(logits_a + noise_a) `[M, N]`, with Gumbel noise (Gumbel 1954; faster here than inverting the cumulative
    distribution, even for two actions), or mean + std * noise `[M, N, A]`, with standard normal noise."""
    if isinstance(policy, Gaussian):
        actions: np.ndarray = np.exp(policy.log_std) * noise
        actions += policy.mean
        return actions
    return np.asarray((policy + noise).argmax(-1))


def epsilon_greedy_noise(uniform: np.ndarray, epsilon: np.ndarray, actions: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether to explore, u < epsilon, and the random action to take then: floor(u / epsilon * actions), which is
    uniform given u < epsilon, so that one random number serves for both."""
    fraction = np.minimum(uniform / np.maximum(epsilon, np.finfo(np.float32).tiny), 1)
    return uniform < epsilon, np.minimum((fraction * actions).astype(np.int64), actions - 1)


def greedy(policy: NumpyPolicy) -> np.ndarray:
    """The most probable action: argmax_a(logits_a) `[M, N]`, or the mean `[M, N, A]`."""
    return policy.mean if isinstance(policy, Gaussian) else np.asarray(policy.argmax(-1))
