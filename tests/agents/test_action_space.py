"""Actions and their densities, against torch.distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import distributions as d

from rldsl.agents.action_space import ActionSpace
from rldsl.envs import Continuous, Discrete
from rldsl.nets import Gaussian, sample

DISCRETE = Discrete(3)
CONTINUOUS = Continuous(np.array([-1.0, 0.0]), np.array([1.0, 5.0]))
M, N = 2, 5
MEAN, LOG_STD = torch.randn(M, N, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([[[-0.5, 0.3]]])
NOISE = torch.randn(M, N, 2, generator=torch.Generator().manual_seed(1))


def test_categorical() -> None:
    space, logits = ActionSpace(DISCRETE, squash=True), torch.randn(M, N, 3)
    action = torch.randint(3, (M, N))
    expected = d.Categorical(logits=logits)
    torch.testing.assert_close(space.log_prob(logits, action), expected.log_prob(action))
    torch.testing.assert_close(space.entropy(logits), expected.entropy())
    assert space.shape == () and not space.squash, "there is nothing to squash"


@pytest.mark.parametrize("log_std", [LOG_STD, LOG_STD.expand(M, N, 2)], ids=["own", "observed"])
def test_gaussian(log_std: torch.Tensor) -> None:
    space, policy = ActionSpace(CONTINUOUS, squash=False), Gaussian(MEAN, log_std)
    expected = d.Independent(d.Normal(MEAN, LOG_STD.exp().expand(M, N, 2)), 1)
    action = MEAN + NOISE
    torch.testing.assert_close(space.log_prob(policy, action), expected.log_prob(action))
    torch.testing.assert_close(space.entropy(policy).expand(M, N), expected.entropy())
    np.testing.assert_array_equal(space.to_env(action.numpy()), action)
    assert space.shape == (2,)


def test_gaussian_through_tanh_is_judged_by_the_sample_before_tanh() -> None:
    space, policy = ActionSpace(CONTINUOUS, squash=True), Gaussian(MEAN, LOG_STD)
    before = MEAN + NOISE
    normal = d.Normal(MEAN.double(), LOG_STD.double().exp())
    expected = d.Independent(d.TransformedDistribution(normal, d.TanhTransform(cache_size=1)), 1)
    ours = space.log_prob(policy, before)
    torch.testing.assert_close(ours, expected.log_prob(before.double().tanh()).float(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(space.to_env(before.numpy()), before.tanh(), rtol=1e-6)


def test_the_density_stays_finite_where_tanh_is_flat() -> None:
    space = ActionSpace(CONTINUOUS, squash=True)
    far = torch.full((M, N, 2), 40.0)
    assert torch.isfinite(space.log_prob(Gaussian(far, LOG_STD), far)).all()


@pytest.mark.parametrize("action", [DISCRETE, CONTINUOUS], ids=str)
def test_noise_of_a_rollout_is_a_members_own_and_makes_the_distribution(action: Discrete | Continuous) -> None:
    space = ActionSpace(action, squash=False)
    noise = space.noise(np.random.default_rng(0), 4000, 5)
    assert noise.shape == (4000, 5, space.size) and noise.dtype == np.float32
    np.testing.assert_array_equal(noise, space.noise(np.random.default_rng(0), 4000, 5))
    if isinstance(action, Discrete):
        logits = np.log(np.array([0.2, 0.5, 0.3], np.float32))
        frequencies = np.bincount(sample(logits, noise).ravel()) / 20_000
        np.testing.assert_allclose(frequencies, [0.2, 0.5, 0.3], atol=0.015)
    else:
        np.testing.assert_allclose([noise.mean(), noise.std()], [0.0, 1.0], atol=0.02)
