"""Action bounds, row seeds, and what of a step is learned from."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rldsl.envs import Continuous, Discrete, Step
from rldsl.envs.seeding import row_seeds

finite = st.floats(-1e6, 1e6)


def test_rescaling_maps_the_unit_interval_onto_the_bounds_and_clips_what_is_outside() -> None:
    action = Continuous(np.array([-2.0, 0.0]), np.array([2.0, 10.0]))
    given_, expected = [[-1, -1], [0, 0], [1, 1], [-3, 7], [0.5, -0.5]], [[-2, 0], [0, 5], [2, 10], [-2, 10], [1, 2.5]]
    np.testing.assert_array_equal(action.rescale(np.array(given_)), expected)


def test_an_unbounded_dimension_passes_through_and_keeps_its_finite_bound() -> None:
    action = Continuous(np.array([-np.inf, 0.0, -4.0]), np.array([np.inf, np.inf, 4.0]))
    np.testing.assert_array_equal(action.rescale(np.array([[7.3, -5.0, 9.0]])), [[7.3, 0.0, 4.0]])


@given(st.tuples(finite, finite).filter(lambda pair: pair[0] < pair[1]), st.floats(-2, 2))
def test_a_rescaled_action_never_leaves_the_bounds(bounds: tuple[float, float], unit: float) -> None:
    low, high = bounds
    (scaled,) = Continuous(np.array([low]), np.array([high])).rescale(np.array([[unit]]))[0]
    assert low <= scaled <= high


def test_rescaling_leaves_the_callers_actions_alone() -> None:
    actions = np.array([[3.0]])
    Continuous(np.array([-1.0]), np.array([1.0])).rescale(actions)
    assert actions == 3.0


def test_continuous_spaces_are_equal_by_their_bounds() -> None:
    one, other = (Continuous(np.array([-1.0]), np.array([high])) for high in (1.0, 2.0))
    assert one == Continuous(one.low.copy(), one.high.copy()) and one.shape == (1,)
    assert one != other and one != Discrete(2)


def raw_step(**more: np.ndarray) -> Step:
    """Of three rows the last ended."""
    over = np.array([False, False, True])
    seen = np.zeros((3, 1))
    return Step(seen, np.array([7.0, 0.0, -3.0]), over, np.zeros(3, bool), np.array([2]), seen[2:], **more)


def test_a_step_is_learned_from_as_it_is_unless_it_says_otherwise() -> None:
    step = raw_step()
    assert step.to_learn() is step


def test_a_learning_reward_takes_the_place_of_the_reward() -> None:
    step = raw_step(learning_reward=np.array([1.0, 0.0, -1.0]))
    learned = step.to_learn()
    assert learned.reward.tolist() == [1.0, 0.0, -1.0] and learned.terminated is step.terminated
    assert step.reward.tolist() == [7.0, 0.0, -3.0], "the score stays"
    assert learned.to_learn() is learned


def test_a_lost_life_is_terminated_only_for_learning() -> None:
    step = raw_step(life_lost=np.array([True, False, False]))
    learned = step.to_learn()
    assert learned.terminated.tolist() == [True, False, True] and learned.reward is step.reward
    assert learned.ended.tolist() == [2] and len(learned.final_observation) == 1, "no episode ended for it"
    assert step.terminated.tolist() == [False, False, True], "the score's episode goes on"


def test_row_seeds_differ_by_session_row_and_stream() -> None:
    seeds = [
        seed for session in range(20) for stream in ("train", "eval", 3) for seed in row_seeds(session, 16, stream)
    ]
    assert len(set(seeds)) == len(seeds) == 20 * 3 * 16
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_row_seeds_depend_on_nothing_else() -> None:
    assert row_seeds(3, 4) == row_seeds(3, 8)[:4] == row_seeds(3, 4, "train")
    assert row_seeds(0, 2) == [int(seed) for seed in row_seeds(0, 2)]


def test_importing_environments_imports_neither_gymnasium_nor_torch() -> None:
    code = "import rldsl.envs, rldsl.envs.classic, sys; sys.exit('gymnasium' in sys.modules or 'torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
