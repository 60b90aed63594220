"""The classic tasks equal Gymnasium's single environments bit for bit, over many episodes and both kinds of ending."""

from collections.abc import Callable
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest

from rldsl.envs import Continuous, Step, VectorEnv, classic
from rldsl.envs.seeding import row_seeds

ROWS, STEPS = 8, 3_000
Policy = Callable[[np.ndarray], np.ndarray]
"""[rows, *shape] observations to raw actions."""


def balance(observation: np.ndarray) -> np.ndarray:
    return (observation[:, 2] + 0.5 * observation[:, 3] + 0.05 * observation[:, 0] > 0).astype(np.int64)


def push_right(observation: np.ndarray) -> np.ndarray:
    return np.ones(len(observation), np.int64)


def pump_acrobot(observation: np.ndarray) -> np.ndarray:
    return np.where(observation[:, 4] > 0, 0, 2)


def pump_car(observation: np.ndarray) -> np.ndarray:
    return np.where(observation[:, 1] < 0, 0, 2)


def pump_car_continuously(observation: np.ndarray) -> np.ndarray:
    return np.where(observation[:, 1:] < 0, -1.3, 1.3)


class Case(NamedTuple):
    id: str
    policy: Policy | None
    """Its actions replace half of the random ones, or all where `always`; None: random actions alone."""
    always: bool
    terminates: bool
    truncates: bool


CASES = [
    Case("CartPole-v1", None, False, terminates=True, truncates=False),
    Case("CartPole-v1", balance, True, terminates=False, truncates=True),
    Case("CartPole-v1", push_right, False, terminates=True, truncates=False),
    Case("Acrobot-v1", None, False, terminates=False, truncates=True),
    Case("Acrobot-v1", pump_acrobot, True, terminates=True, truncates=False),
    Case("MountainCar-v0", None, False, terminates=False, truncates=True),
    Case("MountainCar-v0", pump_car, True, terminates=True, truncates=False),
    Case("MountainCarContinuous-v0", None, False, terminates=False, truncates=True),
    Case("MountainCarContinuous-v0", pump_car_continuously, True, terminates=True, truncates=False),
    Case("Pendulum-v1", None, False, terminates=False, truncates=True),
]


def random_actions(env: VectorEnv, rng: np.random.Generator) -> np.ndarray:
    action = env.spaces.action
    if isinstance(action, Continuous):
        return rng.uniform(-1.2, 1.2, (env.rows, *action.shape))
    return rng.integers(action.n, size=env.rows)


class Singles:
    """Gymnasium's own environments, stepped and reset by hand."""

    def __init__(self, id: str, seeds: list[int]) -> None:
        self.envs = [gymnasium.make(id) for _ in seeds]
        self.first = np.stack([env.reset(seed=seed)[0] for env, seed in zip(self.envs, seeds, strict=True)])

    @property
    def variables(self) -> np.ndarray:
        return np.array([env.unwrapped.state for env in self.envs], np.float64).T

    def step(self, actions: np.ndarray) -> Step:
        results = [env.step(action) for env, action in zip(self.envs, actions, strict=True)]
        observations = [result[0] for result in results]
        ended = [row for row, result in enumerate(results) if result[2] or result[3]]
        final = [observations[row] for row in ended]
        for row in ended:
            observations[row], _ = self.envs[row].reset()
        reward, terminated, truncated = (np.array([result[i] for result in results]) for i in (1, 2, 3))
        final_observation = np.array(final, np.float32).reshape(-1, *self.first.shape[1:])
        return Step(np.stack(observations), reward, terminated, truncated, np.array(ended, np.int64), final_observation)


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray, name: str) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, name
    assert ours.tobytes() == theirs.tobytes(), f"{name}: {ours} is not {theirs}"


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.id}-{case.policy.__name__ if case.policy else 'random'}"
)
def test_every_array_of_every_step_has_the_same_bits(case: Case) -> None:
    seeds = row_seeds(0, ROWS)
    env, singles = classic.make(case.id, ROWS), Singles(case.id, seeds)
    observation = env.reset(seeds)
    assert_same_bits(observation, singles.first, "first observation")
    rng = np.random.default_rng(1)
    terminations = truncations = 0
    for _ in range(STEPS):
        actions = random_actions(env, rng)
        if case.policy and (case.always or rng.random() < 0.5):
            actions = case.policy(observation)
        native = actions
        if isinstance(env.spaces.action, Continuous):
            native = env.spaces.action.rescale(actions).astype(np.float32)
        ours, theirs = env.step(actions), singles.step(native)
        for name in Step._fields[:6]:
            assert_same_bits(getattr(ours, name), getattr(theirs, name), name)
        assert_same_bits(env.state()["variables"], singles.variables, "hidden state")
        observation = ours.observation
        terminations += ours.terminated.sum()
        truncations += ours.truncated.sum()
    assert terminations or not case.terminates
    assert truncations or not case.truncates


def test_an_episode_can_terminate_at_its_time_limit() -> None:
    env, single = classic.make("CartPole-v1", 1), gymnasium.make("CartPole-v1")
    env.reset([0]), single.reset(seed=0)
    edge = np.array([2.399, 3.0, 0.0, 0.0])
    env.restore(env.state() | {"variables": edge[:, None], "steps": np.array([499])})
    single.unwrapped.state, single._elapsed_steps = edge, 499
    step = env.step(np.array([1]))
    observation, _, terminated, truncated, _ = single.step(1)
    assert terminated and truncated and step.terminated[0] and step.truncated[0]
    assert_same_bits(step.final_observation[0], observation, "final observation")
