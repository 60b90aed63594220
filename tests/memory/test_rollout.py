"""A rollout holds what was written, by step, member and environment, and knows where a time limit cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rldsl.envs import Discrete, Spaces, Step
from rldsl.memory.rollout import RolloutBuffer

CPU = torch.device("cpu")


def spaces(dtype: Any = np.float32) -> Spaces:
    return Spaces((3,), np.dtype(dtype), Discrete(2))


def step(random: np.random.Generator, rows: int) -> Step:
    terminated, truncated = random.random((2, rows)) < 0.3
    ended = (terminated | truncated).nonzero()[0]
    seen = random.normal(size=(rows, 3)).astype(np.float32)
    final = random.normal(size=(len(ended), 3)).astype(np.float32)
    return Step(seen, random.normal(size=rows), terminated, truncated, ended, final)


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 1000))
def test_it_reads_as_it_was_written(steps: int, members: int, envs: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    rollout = RolloutBuffer(steps, members, envs, spaces(), ())
    for _ in range(2):  # the second rollout in the same memory keeps nothing of the first
        rollout.clear()
        written = [step(random, members * envs) for _ in range(steps)]
        for t, one in enumerate(written):
            rollout.write(t, one, one.reward.reshape(members, envs))
        np.testing.assert_array_equal(rollout.reward, np.float32(stacked(written, "reward", members)))
        terminated, truncated = (stacked(written, name, members) for name in ("terminated", "truncated"))
        np.testing.assert_array_equal(rollout.terminated, terminated)
        np.testing.assert_array_equal(rollout.ended, terminated | truncated)
        assert found_truncations(rollout) == expected_truncations(written, envs)


def stacked(written: list[Step], name: str, members: int) -> np.ndarray:
    """`[T, M, N]`."""
    return np.stack([getattr(one, name).reshape(members, -1) for one in written])


def found_truncations(rollout: RolloutBuffer) -> dict[tuple[int, ...], tuple[float, ...]]:
    """Last observations by step, member and environment."""
    cut = rollout.truncations()
    places = np.stack([cut.step, cut.member, cut.env], 1).tolist()
    assert len(cut) == len(places)
    return {tuple(place): tuple(seen.tolist()) for place, seen in zip(places, cut.observation, strict=True)}


def expected_truncations(written: list[Step], envs: int) -> dict[tuple[int, ...], tuple[float, ...]]:
    return {
        (t, int(row) // envs, int(row) % envs): tuple(seen.tolist())
        for t, one in enumerate(written)
        for row, seen in zip(one.ended, one.final_observation, strict=True)
        if not one.terminated[row]
    }


def test_what_a_learner_takes_for_an_end_is_one_and_is_no_cut() -> None:
    """Of three rows one lost a life, one met the time limit, and one goes on."""
    rollout, no, end = RolloutBuffer(1, 1, 3, spaces(), ()), np.zeros(3, bool), np.eye(3, dtype=bool)
    seen, final = np.zeros((3, 3), np.float32), np.ones((1, 3), np.float32)
    one = Step(seen, np.zeros(3), no, end[1], np.array([1]), final, life_lost=end[0]).to_learn()
    rollout.write(0, one, one.reward.reshape(1, 3))
    assert rollout.terminated.tolist() == [[[True, False, False]]]
    assert rollout.ended.tolist() == [[[True, True, False]]]
    assert found_truncations(rollout) == {(0, 0, 1): (1.0, 1.0, 1.0)}


def test_a_cut_episode_has_the_last_observation_of_the_critic_too() -> None:
    """Of three rows one ended and two were cut, of which one ended as well."""
    rollout = RolloutBuffer(1, 1, 3, replace(spaces(), critic_shape=(2,)), ())
    terminated, truncated = np.array([True, False, True]), np.array([False, True, True])
    final, own = np.arange(9, dtype=np.float32).reshape(3, 3), np.arange(6, dtype=np.float32).reshape(3, 2)
    one = Step(final, np.zeros(3), terminated, truncated, np.arange(3), final, final_critic_observation=own)
    rollout.write(0, one, one.reward.reshape(1, 3))
    cut = rollout.truncations()
    assert cut.env.tolist() == [1]
    assert cut.observation.tolist() == [[3.0, 4.0, 5.0]] and cut.critic_observation.tolist() == [[2.0, 3.0]]


def test_without_observations_of_its_own_the_critic_saw_what_the_policy_saw() -> None:
    rollout, random = RolloutBuffer(1, 1, 8, spaces(), ()), np.random.default_rng(0)
    rollout.write(0, one := step(random, 8), one.reward.reshape(1, 8))
    cut = rollout.truncations()
    assert rollout.critic_observation is None and len(cut) and cut.critic_observation is cut.observation


def test_tensors_have_the_member_axis_first() -> None:
    rollout = RolloutBuffer(2, 3, 4, spaces(), ())
    rollout.reward[:] = np.arange(24).reshape(2, 3, 4)
    tensor = rollout.tensor("reward", CPU)
    assert tensor.shape == (3, 2, 4) and tensor.is_contiguous()
    assert tensor[2, 1, 3] == 23 and tensor[2, 0, 0] == 8


@pytest.mark.parametrize(("seen", "kept"), [(np.uint8, np.uint8), (np.float64, np.float32), (np.int64, np.float32)])
def test_pixels_stay_bytes_and_all_else_is_float32(seen: Any, kept: Any) -> None:
    assert RolloutBuffer(1, 1, 1, spaces(seen), ()).observation.dtype == kept


def test_actions_are_whole_numbers_or_vectors() -> None:
    assert RolloutBuffer(1, 1, 1, spaces(), ()).action.dtype == np.int64
    continuous = RolloutBuffer(4, 2, 3, spaces(), (5,)).action
    assert continuous.shape == (4, 2, 3, 5) and continuous.dtype == np.float32
