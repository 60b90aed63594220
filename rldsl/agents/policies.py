"""What a policy's distribution means for actions: categorical, Gaussian, or Gaussian through tanh."""

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
    """The actions of one environment: how noise for them is drawn, how probable they are."""

    def __init__(self, action: Discrete | Continuous, squash: bool) -> None:
        self.discrete = isinstance(action, Discrete)
        self.squash = squash and not self.discrete
        self.size = action.n if isinstance(action, Discrete) else prod(action.shape)
        self.shape: tuple[int, ...] = () if self.discrete else (self.size,)

    def noise(self, random: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        """Noise for a rollout of one member, `[T, N, A]`, as `nets.sampling.sample` takes it."""
        shape = (steps, num_envs, self.size)
        if self.discrete:
            return gumbel_noise(random.random(shape, np.float32))
        return random.standard_normal(shape, np.float32)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        """A sampled action as the environment takes it; the sample itself is what is learned from."""
        return np.tanh(action) if self.squash else action

    def log_prob(self, policy: Policy, action: Tensor) -> Tensor:
        """Log probability of sampled actions: of the sample before tanh, where it is squashed."""
        if self.discrete:
            return categorical_log_prob(cast(Tensor, policy), action)
        density = squashed_gaussian_log_prob if self.squash else gaussian_log_prob
        gaussian = cast("Gaussian[Tensor]", policy)
        return density(gaussian.mean, gaussian.log_std, action)

    def entropy(self, policy: Policy) -> Tensor:
        """Entropy, of the Gaussian before tanh where it is squashed; `[M, 1]` if no observation changes it."""
        if self.discrete:
            return categorical_entropy(cast(Tensor, policy))
        return gaussian_entropy(cast("Gaussian[Tensor]", policy).log_std)
