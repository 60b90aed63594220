"""Running normalisation: by hand, against the moments of all data at once, and resumed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl.maths import normalizers


def test_update_moments_by_hand() -> None:
    state = {"mean": np.array([0.0]), "var": np.array([1.0]), "count": np.array([2.0])}
    # merge 4, 8: d = 6, n = 4: mean = 6 * 2 / 4 = 3, var = (2 * 1 + 2 * 4 + 36 * 2 * 2 / 4) / 4 = 46 / 4 = 11.5
    state = normalizers.update_moments(state, np.array([[4.0, 8.0]]))
    np.testing.assert_allclose([state["mean"][0], state["var"][0], state["count"][0]], [3.0, 11.5, 4.0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_moments_are_those_of_all_data(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    batches = [rng.normal(3.0, 5.0, (2, n, 4)) for n in sizes]
    state = normalizers.moments_state(2, (4,))
    state["count"][:] = 0  # without the prior, the merge is exact
    for batch in batches:
        state = normalizers.update_moments(state, batch)
    everything = np.concatenate(batches, axis=1)
    np.testing.assert_allclose(state["mean"], everything.mean(1))
    np.testing.assert_allclose(state["var"], everything.var(1), atol=1e-12)


def test_moments_stay_exact_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    data = 1e6 + rng.normal(size=(1, 20_000))
    state = normalizers.moments_state(1)
    for batch in np.split(data, 1000, axis=1):
        state = normalizers.update_moments(state, batch.astype(np.float64))
    # The prior, a weight of 1e-4 at mean 0, adds d^2 * n_a / n = 1e12 * 1e-4 / 2e4 to the variance
    np.testing.assert_allclose(state["var"][0], data.var() + 1e12 * 1e-4 / 2e4, rtol=1e-6)


def test_normalize_by_hand_and_clipped() -> None:
    state = {"mean": np.array([[1.0], [0.0]]), "var": np.array([[4.0], [1.0]]), "count": np.ones(2)}
    # (5 - 1) / 2 = 2, (1001 - 1) / 2 -> 10; 5, and -1001 -> -10
    got = normalizers.normalize(state, np.array([[[5.0], [1001.0]], [[5.0], [-1001.0]]]), eps=0.0)
    np.testing.assert_array_equal(got, [[[2.0], [10.0]], [[5.0], [-10.0]]])
    assert got.dtype == np.float32


def test_reward_scale_by_hand() -> None:
    state = normalizers.reward_scale_state(1, 2)
    state["count"][:] = 0
    gamma = np.array([0.5])
    state = normalizers.update_reward_scale(state, np.array([[2.0, 4.0]]), np.array([[False, True]]), gamma)
    np.testing.assert_allclose(state["return"], [[2.0, 0.0]])  # the second episode has ended
    np.testing.assert_allclose(state["var"], [1.0])  # of 2, 4
    state = normalizers.update_reward_scale(state, np.array([[5.0, 4.0]]), np.array([[False, False]]), gamma)
    np.testing.assert_allclose(state["return"], [[6.0, 4.0]])  # .5 * 2 + 5, .5 * 0 + 4
    np.testing.assert_allclose(state["var"], [2.0])  # of 2, 4, 6, 4: mean 4, (4 + 0 + 4 + 0) / 4
    got = normalizers.scale_reward(state, np.array([[2.0, -100.0]]), eps=2.0)
    np.testing.assert_allclose(got, [[1.0, -10.0]])  # 2 / sqrt(2 + 2); -50 -> -10


def trace(steps: int, poison: bool = False, resume_at: int | None = None) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    state, seen = normalizers.reward_scale_state(2, 3), []
    for step in range(steps):
        if step == resume_at:
            state = {k: np.frombuffer(v.tobytes()).reshape(v.shape) for k, v in state.items()}
        reward, ended = rng.normal(size=(2, 3)), rng.random((2, 3)) < 0.2
        reward[0] = np.nan if poison else reward[0]
        state = normalizers.update_reward_scale(state, reward, ended, np.array([0.9, 0.99]))
        seen.append(normalizers.scale_reward(state, reward))
    return seen


@pytest.mark.parametrize("resume_at", [0, 7, 19])
def test_a_resumed_state_goes_on_bit_for_bit(resume_at: int) -> None:
    np.testing.assert_array_equal(trace(20), trace(20, resume_at=resume_at))


def test_members_do_not_mix() -> None:
    for clean, poisoned in zip(trace(20), trace(20, poison=True), strict=True):
        np.testing.assert_array_equal(clean[1], poisoned[1])
        assert np.isnan(poisoned[0]).all()


def test_an_update_leaves_the_old_state_alone() -> None:
    old = normalizers.reward_scale_state(1, 2)
    normalizers.update_reward_scale(old, np.ones((1, 2)), np.zeros((1, 2), dtype=bool), np.ones(1))
    for key, value in normalizers.reward_scale_state(1, 2).items():
        np.testing.assert_array_equal(old[key], value)
