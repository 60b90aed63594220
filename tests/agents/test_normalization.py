"""Running normalisation: statistics of each member's own, raw values where nothing is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rldsl import PPO, Sarsa
from rldsl.agents.base import AgentContext
from rldsl.agents.normalization import Normalization
from rldsl.envs import Discrete, Spaces, Step

M, N = 2, 4
BOTH = PPO(normalize_observations=True, normalize_rewards=True)


def normalization(*agents: Any, critic: tuple[int, ...] | None = None) -> Normalization:
    spaces = Spaces((3,), np.dtype(np.float32), Discrete(2), critic_shape=critic)
    return Normalization(agents[0], AgentContext(agents, range(len(agents)), spaces, num_envs=N, frames=100))


def observations(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(3.0, 2.0, (M, N, 3))


def step(reward: np.ndarray, ended: np.ndarray) -> Step:
    none, nothing = np.zeros(ended.size, bool), np.zeros(0)
    return Step(nothing, reward.ravel(), none, ended.ravel(), ended.ravel().nonzero()[0], nothing)


def test_observations_come_to_mean_0_and_deviation_1_of_their_own_member() -> None:
    one = normalization(BOTH, BOTH)
    seen = [observations(seed) * np.array([1.0, 50.0])[:, None, None] for seed in range(50)]
    for each in seen:
        normalized = one.update_and_normalize(each)
    whole = np.concatenate(seen, 1)
    expected = (seen[-1] - whole.mean(1, keepdims=True)) / whole.std(1, keepdims=True)
    np.testing.assert_allclose(normalized, np.clip(expected, -10, 10), rtol=1e-3, atol=1e-3)


def test_normalize_does_not_update_the_statistics() -> None:
    one = normalization(BOTH, BOTH)
    one.update_and_normalize(observations())
    before = one.save(0)
    first, again = one.normalize(observations(1)), one.normalize(observations(1))
    np.testing.assert_array_equal(first, again)
    for name, array in one.save(0)["observations"].items():
        np.testing.assert_array_equal(array, before["observations"][name])


def test_what_is_far_out_is_clipped() -> None:
    one = normalization(BOTH, BOTH)
    one.update_and_normalize(observations())
    assert np.abs(one.normalize(observations() + 1e6)).max() == 10.0


def test_nothing_is_done_where_nothing_is_asked() -> None:
    one = normalization(PPO(), PPO())
    np.testing.assert_array_equal(one.update_and_normalize(observations()), observations())
    assert one.normalize(observations()).dtype == np.float32
    pixels = np.full((M, N, 3), 200, np.uint8)
    assert one.normalize(pixels) is pixels
    reward = np.full((M, N), -7.0)
    np.testing.assert_array_equal(one.scale_reward(step(reward, np.zeros((M, N), bool))), reward)
    assert one.save(0) == {"observations": None, "critic_observations": None, "rewards": None}


def test_an_agent_that_knows_no_normalisation_of_rewards_has_none() -> None:
    assert normalization(Sarsa(normalize_observations=True)).rewards is None


def test_rewards_are_divided_by_the_deviation_of_the_members_own_discounted_return() -> None:
    gammas, random = (0.9, 0.5), np.random.default_rng(0)
    one = normalization(*(BOTH.with_(gamma=gamma) for gamma in gammas))
    running, history = np.zeros((M, N)), [[], []]
    for _ in range(200):
        reward, ended = random.normal(size=(M, N)), random.random((M, N)) < 0.1
        scaled = one.scale_reward(step(reward, ended))
        running = np.array(gammas)[:, None] * running + reward
        for member in range(M):
            history[member] += running[member].tolist()
        expected = reward / np.array([np.std(member) for member in history])[:, None]
        running[ended] = 0.0
    np.testing.assert_allclose(scaled, np.clip(expected, -10, 10), rtol=1e-2)


@pytest.mark.parametrize("member", range(M))
def test_one_members_nan_stays_its_own(member: int) -> None:
    healthy, poisoned = normalization(BOTH, BOTH), normalization(BOTH, BOTH)
    seen, other = observations(), 1 - member
    broken = seen.copy()
    broken[member] = np.nan
    np.testing.assert_array_equal(
        poisoned.update_and_normalize(broken)[other], healthy.update_and_normalize(seen)[other]
    )
    np.testing.assert_array_equal(poisoned.normalize(seen)[other], healthy.normalize(seen)[other])


def test_a_member_goes_on_from_its_saved_statistics() -> None:
    one, other = normalization(BOTH, BOTH), normalization(BOTH, BOTH)
    reward, ended = observations()[..., 0], np.zeros((M, N), bool)
    one.update_and_normalize(observations())
    one.scale_reward(step(reward, ended))
    other.load(0, one.save(1))
    np.testing.assert_array_equal(other.normalize(observations(1)[::-1])[0], one.normalize(observations(1))[1])
    np.testing.assert_array_equal(
        other.scale_reward(step(reward[::-1], ended))[0], one.scale_reward(step(reward, ended))[1]
    )


def privileged(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(-40.0, 9.0, (M, N, 2)).astype(np.float32)


def test_what_the_critic_sees_has_statistics_of_its_own() -> None:
    one, policys = normalization(BOTH, BOTH, critic=(2,)), normalization(BOTH, BOTH)
    for seed in range(50):
        np.testing.assert_array_equal(
            one.update_and_normalize(observations(seed)), policys.update_and_normalize(observations(seed))
        )
        normalized = one.update_and_normalize_critic(privileged(seed))
    whole = np.concatenate([privileged(seed) for seed in range(50)], 1)
    expected = (privileged(49) - whole.mean(1, keepdims=True)) / whole.std(1, keepdims=True)
    np.testing.assert_allclose(normalized, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(one.normalize_critic(privileged(49)), normalized)
    np.testing.assert_array_equal(one.normalize(observations()), policys.normalize(observations()))


def test_a_critic_without_observations_of_its_own_sees_them_as_the_policy_does() -> None:
    one = normalization(BOTH, BOTH)
    one.update_and_normalize(observations())
    np.testing.assert_array_equal(one.normalize_critic(observations(1)), one.normalize(observations(1)))


def test_the_critics_statistics_are_saved_too() -> None:
    one, other = (normalization(BOTH, BOTH, critic=(2,)) for _ in range(2))
    one.update_and_normalize_critic(privileged())
    other.load(0, one.save(1))
    np.testing.assert_array_equal(
        other.normalize_critic(privileged(1)[::-1])[0], one.normalize_critic(privileged(1))[1]
    )


def test_statistics_that_know_of_no_critic_can_be_gone_on_from() -> None:
    one, other = normalization(BOTH, BOTH), normalization(BOTH, BOTH)
    one.update_and_normalize(observations())
    saved = {name: state for name, state in one.save(1).items() if name != "critic_observations"}
    other.load(1, saved)
    np.testing.assert_array_equal(other.normalize(observations(1))[1], one.normalize(observations(1))[1])


def test_final_observations_are_normalised_by_the_statistics_of_their_own_member() -> None:
    one = normalization(BOTH, BOTH, critic=(2,))
    for seed in range(3):
        one.update_and_normalize(observations(seed))
        one.update_and_normalize_critic(privileged(seed))
    seen, own, ended = observations(7), privileged(7), np.array([1, 6])
    none, rows = np.zeros(M * N, bool), (-1, 3)
    step = Step(
        seen.reshape(rows), np.zeros(M * N), none, none, ended, seen.reshape(rows)[ended],
        final_critic_observation=own.reshape(-1, 2)[ended],
    )  # fmt: skip
    finals = one.normalize_finals(step)
    np.testing.assert_array_equal(finals.final_observation, one.normalize(seen).reshape(rows)[ended])
    np.testing.assert_array_equal(finals.final_critic_observation, one.normalize_critic(own).reshape(-1, 2)[ended])
    assert finals.observation is step.observation
