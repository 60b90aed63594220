"""One row as a plain Gymnasium environment."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rldsl.envs import EnvError, classic
from rldsl.envs.gym import GymnasiumEnv
from rldsl.envs.single import SingleEnv


@pytest.mark.parametrize("id", classic.ENVIRONMENTS)
def test_gymnasium_checks_it(id: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|render modes).*")
        check_env(SingleEnv(classic.make(id, 1)))


def test_it_goes_as_gymnasiums_own_over_many_episodes() -> None:
    ours, theirs = SingleEnv(classic.make("CartPole-v1", 1)), gymnasium.make("CartPole-v1")
    np.testing.assert_array_equal(ours.reset(seed=4)[0], theirs.reset(seed=4)[0])
    rng = np.random.default_rng(0)
    for _ in range(500):
        action = int(rng.integers(2))
        (observation, *rest), (expected, *expected_rest) = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(observation, expected)
        assert rest == expected_rest
        if rest[1] or rest[2]:
            np.testing.assert_array_equal(ours.reset()[0], theirs.reset()[0])


def test_a_reset_amid_an_episode_starts_anew() -> None:
    env = SingleEnv(GymnasiumEnv("CartPole-v1", 1))
    first, _ = env.reset(seed=0)
    env.step(0)
    again, _ = env.reset()
    assert not np.array_equal(first, again) and (np.abs(again) <= 0.05).all()
    env.close()


def test_it_needs_one_row() -> None:
    with pytest.raises(EnvError, match="one row, but this one has 2"):
        SingleEnv(classic.make("CartPole-v1", 2))


def test_the_waiting_start_is_forgotten_once_the_row_has_moved_on() -> None:
    env = SingleEnv(classic.make("CartPole-v1", 1))
    env.reset(seed=0)
    while not env.step(1)[2]:
        pass
    waiting = env._next_start
    env.step(1)
    assert waiting is not None and not np.array_equal(env.reset()[0], waiting)
