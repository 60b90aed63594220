"""The sum tree against a plain list of priorities, and prioritized replay's shares and weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl.memory.priorities import Priorities
from rldsl.memory.sum_tree import SumTree, stratified

sizes = st.integers(1, 40) | st.sampled_from([2048, 2049, 5000, 70_000])
seeds = st.integers(0, 10**6)


def filled(members: int, size: int, seed: int, times: int = 3) -> tuple[SumTree, np.ndarray]:
    """A tree in which many priorities were set, some twice in one call and some to 0, and what a list would hold."""
    random = np.random.default_rng(seed)
    tree, plain = SumTree(members, size), np.zeros((members, size))
    for _ in range(times):
        index = random.integers(size, size=(members, 50))
        priority = np.where(random.random(index.shape) < 0.3, 0.0, 10.0 ** random.uniform(-6, 3, index.shape))
        tree.set(index, priority)
        for member in range(members):
            for place, value in zip(index[member], priority[member], strict=True):
                plain[member, place] = value
    tree.set(np.zeros((members, 1), np.int64), np.ones((members, 1)))
    plain[:, 0] = 1.0
    return tree, plain


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), sizes, seeds)
def test_it_holds_what_was_set_last_and_the_sums_of_it(members: int, size: int, seed: int) -> None:
    tree, plain = filled(members, size, seed)
    everything = np.broadcast_to(np.arange(size), (members, size))
    np.testing.assert_array_equal(tree.get(everything), plain)
    np.testing.assert_allclose(tree.total(), plain.sum(1), rtol=1e-12)
    for level in tree.levels:
        np.testing.assert_allclose(level.sum(1), plain.sum(1), rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), sizes, seeds)
def test_it_draws_where_a_cumulative_sum_passes(members: int, size: int, seed: int) -> None:
    tree, plain = filled(members, size, seed)
    uniform = np.random.default_rng(seed).random((members, 30))
    drawn = tree.sample(uniform)
    for member in range(members):
        cumulative = plain[member].cumsum()
        mass = uniform[member] * cumulative[-1]
        below = np.concatenate(([0.0], cumulative))[drawn[member]]
        slack = 1e-12 * cumulative[-1]  # sums that are made in another order
        assert (below <= mass + slack).all() and (mass <= cumulative[drawn[member]] + slack).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3), sizes, seeds)
def test_what_has_no_priority_is_never_drawn(members: int, size: int, seed: int) -> None:
    tree, plain = filled(members, size, seed)
    edges = np.array([0.0, 5e-324, 0.5, 1 - 2**-53, np.nextafter(1.0, 0.0)])
    uniform = np.concatenate((edges, np.random.default_rng(seed).random(200)))
    drawn = tree.sample(np.broadcast_to(uniform, (members, 205)))
    assert drawn.min() >= 0 and drawn.max() < size
    assert (np.take_along_axis(plain, drawn, 1) > 0).all()


@settings(deadline=None, max_examples=30)
@given(sizes, seeds)
def test_sums_are_the_same_whatever_the_way_to_them(size: int, seed: int) -> None:
    """Bit for bit: a restored tree draws what the saved one would have drawn, and a member what it draws alone."""
    tree, plain = filled(2, size, seed)
    restored, alone = SumTree(2, size), SumTree(1, size)
    restored.set(np.zeros((2, 1), np.int64), np.full((2, 1), 9.0))
    for member in range(2):
        restored.restore(member, plain[member])
    alone.restore(0, plain[1])
    for ours, theirs, single in zip(tree.levels, restored.levels, alone.levels, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(ours[1:], single)
    tree.restore(0, plain[0, :1])
    np.testing.assert_array_equal(tree.levels[0][0, 1:], 0.0)


def test_shares_of_the_draws_are_those_of_the_priorities() -> None:
    tree = SumTree(2, 5000)
    tree.set(np.array([[7, 40, 4999], [0, 1, 2]]), np.array([[1.0, 2.0, 5.0], [3.0, 0.0, 1.0]]))
    drawn = tree.sample(np.random.default_rng(0).random((2, 40_000)))
    share = [np.bincount(one, minlength=5000) / 40_000 for one in drawn]
    np.testing.assert_allclose(share[0][[7, 40, 4999]], [0.125, 0.25, 0.625], atol=0.01)
    np.testing.assert_allclose(share[1][[0, 1, 2]], [0.75, 0.0, 0.25], atol=0.01)


def test_strata_hold_one_draw_each() -> None:
    uniform = stratified(np.random.default_rng(0).random((3, 2, 8)))
    np.testing.assert_array_equal(np.floor(uniform * 8), np.broadcast_to(np.arange(8), (3, 2, 8)))


def test_priorities_and_weights_by_hand() -> None:
    some = Priorities(2, 4, [1.0, 0.5])
    some.replace(np.arange(4), np.arange(0))
    some.update(np.array([[0, 1, 2, 3]] * 2), np.array([[1.0, -2.0, 4.0, 8.0], [1.0, -4.0, 16.0, 0.0]], np.float32))
    held = some.tree.get(np.array([[0, 1, 2, 3]] * 2))
    np.testing.assert_allclose(held, [[1, 2, 4, 8], [1, 2, 4, 1e-3]], rtol=1e-5)
    # P = 1/15, 2/15, 4/15: (4 P)^-1 is 15/4, 15/8, 15/16, over the largest 1, 1/2, 1/4; with beta .5 the roots of these
    index = np.array([[[0, 1, 2]], [[0, 1, 2]]])
    weight = some.weights(index, np.array([1.0, 0.5]))[:, 0]
    np.testing.assert_allclose(weight, [[1, 0.5, 0.25], [1, 0.5**0.5, 0.5]], rtol=1e-5)


def test_what_is_gone_is_not_drawn_and_what_is_new_has_the_highest_priority() -> None:
    some = Priorities(1, 8, [1.0])
    some.replace(np.array([0, 1]), np.array([], np.int64))
    some.update(np.array([[0]]), np.array([[5.0]]))
    some.replace(np.array([2, 3]), np.array([0, 1]))
    np.testing.assert_allclose(some.tree.get(np.arange(8)[None]), [[0, 0, 5, 5, 0, 0, 0, 0]], rtol=1e-5)
    assert set(some.sample(np.random.default_rng(0).random((1, 2, 50))).reshape(-1)) == {2, 3}


@pytest.mark.parametrize(("size", "levels"), [(2048, 1), (50_000, 2), (1_000_000, 3)])
def test_it_is_as_deep_as_it_must_be(size: int, levels: int) -> None:
    tree = SumTree(1, size)
    assert len(tree.levels) == levels
    assert sum(level.nbytes for level in tree.levels) < 8.6 * size + 2e4
