"""The memory of episodes against a list that does the same: the oldest go first, the surprising are sampled more."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rldsl.memory.episode_buffer import EpisodeBuffer

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=12)


def memory(size: int = 8, action: tuple[int, ...] = ()) -> EpisodeBuffer:
    return EpisodeBuffer(size, (2,), np.float32, action)


def add(one: EpisodeBuffer, numbers: np.ndarray) -> None:
    """An episode whose every part tells the number of its step."""
    one.add(np.stack([numbers, -numbers], 1), numbers, numbers * 0.5)


@given(lengths, st.integers(1, 9))
def test_it_keeps_the_newest_transitions(episodes: list[int], size: int) -> None:
    one, all_of_them = memory(size), []
    for length in episodes:
        numbers = len(all_of_them) + np.arange(length)
        add(one, numbers)
        all_of_them += numbers.tolist()
    kept = one.action[: one.filled]
    assert sorted(kept) == all_of_them[-size:]
    np.testing.assert_array_equal(one.returns[: one.filled], kept * 0.5)
    np.testing.assert_array_equal(one.observation[: one.filled], np.stack([kept, -kept], 1))


@given(lengths, st.integers(0, 100))
def test_what_is_new_is_as_likely_as_the_likeliest(episodes: list[int], seed: int) -> None:
    one, random = memory(64), np.random.default_rng(seed)
    for length in episodes:
        before, at = one.priority[: one.filled].max(initial=1.0), one.next
        add(one, np.arange(length))
        np.testing.assert_array_equal(one.priority[(at + np.arange(length)) % 64], max(before, 1.0))
        index = random.integers(one.filled, size=3)
        one.prioritize(index, random.normal(size=3) * 5, alpha=0.6)


def test_the_priority_is_a_power_of_the_positive_part_of_the_advantage() -> None:
    one = memory()
    add(one, np.arange(3))
    one.prioritize(np.array([0, 1, 2]), np.array([2.0, -1.0, 0.0]), alpha=0.6)
    np.testing.assert_allclose(one.priority[:3], [(2 + 1e-6) ** 0.6, 1e-6**0.6, 1e-6**0.6])


def test_samples_follow_the_priorities_and_weights_take_that_back() -> None:
    one = memory()
    add(one, np.arange(4))
    one.priority[:4] = [1.0, 2.0, 0.0, 5.0]
    index, weight = one.sample(np.random.default_rng(0), 40_000, beta=0.4)
    np.testing.assert_allclose(np.bincount(index, minlength=4) / 40_000, [0.125, 0.25, 0.0, 0.625], atol=0.01)
    by_hand = (4 * np.array([0.125, 0.25, np.nan, 0.625])) ** -0.4
    np.testing.assert_allclose(weight, (by_hand / by_hand[0])[index], rtol=1e-6)
    assert weight.max() == 1.0 and weight.dtype == np.float32


@given(st.integers(1, 8), st.integers(0, 1000))
def test_samples_are_only_of_what_was_filled(length: int, seed: int) -> None:
    one = memory(16)
    add(one, np.arange(length))
    index, _ = one.sample(np.random.default_rng(seed), 50, beta=0.1)
    assert index.min() >= 0 and index.max() < length


@given(lengths, lengths)
def test_a_memory_that_is_saved_and_restored_goes_on_as_it_was(before: list[int], after: list[int]) -> None:
    one, other = memory(9), memory(9)
    for length in before:
        add(one, np.arange(length))
    one.prioritize(np.array([0]), np.array([3.0]), alpha=0.6)
    saved = one.state()
    one_more = memory(9)
    add(one_more, np.arange(5))  # what a restored memory held before does not matter
    for each in (other, one_more):
        each.restore(saved)
    for each in (one, other, one_more):
        for length in after:
            add(each, np.arange(length))
    for each in (other, one_more):
        for ours, expected in zip(each.sample(rng(), 20, 0.1), one.sample(rng(), 20, 0.1), strict=True):
            np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(each.action[: each.filled], one.action[: one.filled])


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_a_saved_state_is_a_copy() -> None:
    one = memory()
    add(one, np.arange(4))
    saved = one.state()
    add(one, np.arange(8) + 100)
    assert saved["action"].tolist() == [0, 1, 2, 3] and saved["filled"] == 4
