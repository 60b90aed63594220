"""How a policy's output becomes actions: categorical, Gaussian, or Gaussian squashed by tanh."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np
from torch import Tensor

from rldsl.envs.contract import Continuous, Discrete
from rldsl.maths.distributions import (
    categorical_entropy,
    categorical_log_prob,
    gaussian_entropy,
    gaussian_log_prob,
    squashed_gaussian_log_prob,
)
from rldsl.nets.heads import Gaussian, Policy
from rldsl.nets.sampling import gumbel_noise


class ActionSpace:
    """The action distribution of an environment: sampling noise, log-probability and entropy."""

    def __init__(self, action: Discrete | Continuous, squash: bool) -> None:
        self.discrete = isinstance(action, Discrete)
        self.squash = squash and not self.discrete
        self.size = action.n if isinstance(action, Discrete) else prod(action.shape)
        self.shape: tuple[int, ...] = () if self.discrete else (self.size,)

    def noise(self, rng: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        """Noise `[T, N, A]` for one member's rollout, as `nets.sampling.sample` takes it."""
        shape = (steps, num_envs, self.size)
        if self.discrete:
            return gumbel_noise(rng.random(shape, np.float32))
        return rng.standard_normal(shape, np.float32)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        """The environment's action for a sample; the loss uses the sample itself."""
        return np.tanh(action) if self.squash else action

    def log_prob(self, policy: Policy, action: Tensor) -> Tensor:
        """Log-probability of sampled actions (before tanh, if squashed)."""
        if self.discrete:
            return categorical_log_prob(cast(Tensor, policy), action)
        log_density = squashed_gaussian_log_prob if self.squash else gaussian_log_prob
        gaussian = cast("Gaussian[Tensor]", policy)
        return log_density(gaussian.mean, gaussian.log_std, action)

    def entropy(self, policy: Policy) -> Tensor:
        """Entropy (of the Gaussian before tanh, if squashed); `[M, 1]` if it is independent of the observation."""
        if self.discrete:
            return categorical_entropy(cast(Tensor, policy))
        return gaussian_entropy(cast("Gaussian[Tensor]", policy).log_std)
