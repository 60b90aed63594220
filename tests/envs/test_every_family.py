"""One step contract for every family and backend: what a learner relies on, whoever steps the environment."""

from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from rldsl.envs import Continuous, EnvError, Step, VectorEnv
from rldsl.envs.envpool import EnvPoolEnv
from rldsl.spec.environment import Atari, Box2D, Classic, Environment, Gym, MuJoCo
from rldsl.spec.implementation import implementation

needs_envpool = pytest.mark.skipif(find_spec("envpool") is None, reason="the extra `envpool` is not installed")
BACKENDS = [pytest.param("gymnasium"), pytest.param("envpool", marks=needs_envpool)]
FAMILIES = [
    Classic("CartPole-v1"),
    Classic("Pendulum-v1"),
    Box2D("LunarLander-v3"),
    Box2D("LunarLanderContinuous-v3"),
    Box2D("BipedalWalker-v3", max_episode_steps=90),
    Box2D("BipedalWalkerHardcore-v3", max_episode_steps=90),
    *(
        pytest.param(Box2D(id, backend="envpool", max_episode_steps=90), marks=needs_envpool)
        for id in ("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3")
    ),
    MuJoCo("Hopper-v5"),
    MuJoCo("Humanoid-v5"),
    Atari("Pong", max_frames=100),
    Gym("Acrobot-v1", max_episode_steps=60, wrappers=("gymnasium.wrappers:TimeAwareObservation",)),
]
every_family = pytest.mark.parametrize(
    "spec", FAMILIES, ids=lambda spec: f"{spec.kind}-{spec.id}-{getattr(spec, 'backend', 'own')}"
)
SEEDS = [5, 11, 7]


def rows_of(spec: Environment, rows: int, threads: int = 2) -> Any:
    return closing(implementation(spec)(spec, rows, threads))


def random_actions(env: VectorEnv, rows: int) -> np.ndarray:
    """Random actions for a few episodes, some of them out of bounds where there are bounds."""
    rng, action = np.random.default_rng(0), env.spaces.action
    steps = 60 if len(env.spaces.observation_shape) == 3 else 220  # screens take their time
    if isinstance(action, Continuous):
        return rng.uniform(-1.3, 1.3, (steps, rows, *action.shape))
    return rng.integers(action.n, size=(steps, rows))


def played(env: VectorEnv, seeds: list[int], actions: np.ndarray) -> Iterator[Step]:
    """Every step, as copies."""
    env.reset(seeds)
    for action in actions:
        step = env.step(action)
        yield step._replace(**{name: one.copy() for name, one in step._asdict().items() if one is not None})


@every_family
def test_a_step_is_what_the_contract_says(spec: Environment) -> None:
    with rows_of(spec, 3) as env:
        shape, dtype = env.spaces.observation_shape, env.spaces.observation_dtype
        start = env.reset(SEEDS)
        assert (start.shape, start.dtype) == ((3, *shape), dtype)
        endings = 0
        for step in played(env, SEEDS, random_actions(env, 3)):
            assert (step.observation.shape, step.observation.dtype) == ((3, *shape), dtype)
            assert (step.reward.shape, step.reward.dtype) == ((3,), np.float64)
            assert step.terminated.dtype == step.truncated.dtype == bool
            np.testing.assert_array_equal(step.ended, np.flatnonzero(step.terminated | step.truncated))
            assert (step.final_observation.shape, step.final_observation.dtype) == ((len(step.ended), *shape), dtype)
            for row, last in zip(step.ended, step.final_observation, strict=True):
                assert not np.array_equal(last, step.observation[row])
            endings += len(step.ended)
        assert endings >= 3


@every_family
def test_a_row_alone_goes_as_it_goes_among_others(spec: Environment) -> None:
    with rows_of(spec, 3) as several, rows_of(spec, 1) as alone:
        actions = random_actions(several, 3)
        together = played(several, SEEDS, actions)
        for step, single in zip(together, played(alone, SEEDS[1:2], actions[:, 1:2]), strict=True):
            assert (step.reward[1], step.terminated[1], step.truncated[1]) == (
                single.reward[0],
                single.terminated[0],
                single.truncated[0],
            )
            np.testing.assert_array_equal(step.observation[1], single.observation[0])
            np.testing.assert_array_equal(step.final_observation[step.ended == 1], single.final_observation)


@every_family
def test_rows_with_equal_seeds_and_actions_are_equal_and_others_are_not(spec: Environment) -> None:
    with rows_of(spec, 3) as env:
        actions = random_actions(env, 3)
        actions[:, 1:] = actions[:, :1]
        steps = list(played(env, [5, 5, 11], actions))
        for step in steps:
            np.testing.assert_array_equal(step.observation[0], step.observation[1])
            assert step.reward[0] == step.reward[1]
        assert any(not np.array_equal(step.observation[0], step.observation[2]) for step in steps)


@every_family
def test_actions_are_clipped_and_what_a_step_gave_is_not_the_environments_memory(spec: Environment) -> None:
    with rows_of(spec, 2) as env, rows_of(spec, 2) as other:
        actions, seeds = random_actions(env, 2), SEEDS[:2]
        clipped = actions.clip(-1.0, 1.0) if isinstance(env.spaces.action, Continuous) else actions
        for step, expected in zip(played(env, seeds, actions), scribbled(other, seeds, clipped), strict=True):
            np.testing.assert_array_equal(step.observation, expected[0])
            np.testing.assert_array_equal(step.reward, expected[1])


def scribbled(env: VectorEnv, seeds: list[int], actions: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Observations and rewards, while everything that the environment gives is written over."""
    env.reset(seeds)
    for action in actions:
        step = env.step(action)
        yield step.observation.copy(), step.reward.copy()
        for one in (step.observation, step.reward, step.final_observation):
            one.fill(1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_time_limit_truncates_and_no_step_is_lost_to_a_reset(backend: Any) -> None:
    with rows_of(Box2D("BipedalWalker-v3", backend=backend, max_episode_steps=20), 2) as env:
        steps = list(played(env, SEEDS[:2], np.zeros((60, 2, 4))))
        assert [at for at, step in enumerate(steps, 1) if step.ended.size] == [20, 40, 60]
        for step in (steps[19], steps[39], steps[59]):
            assert step.truncated.all() and not step.terminated.any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_crash_terminates(backend: Any) -> None:
    with rows_of(Box2D("LunarLander-v3", backend=backend), 2) as env:
        ends = [step for step in played(env, SEEDS[:2], np.zeros((220, 2), np.int64)) if step.ended.size]
        assert ends
        for step in ends:
            assert step.terminated[step.ended].all() and not step.truncated.any()
            np.testing.assert_array_equal(step.reward[step.ended], -100.0)
            assert (step.final_observation[:, 1] < 0.5).all() and (step.observation[step.ended, 1] > 1.0).all()


@needs_envpool
def test_both_backends_have_the_same_spaces_and_are_different_work() -> None:
    for id in ("LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3", "BipedalWalkerHardcore-v3"):
        with rows_of(Box2D(id), 1) as one, rows_of(Box2D(id, backend="envpool"), 1) as other:
            assert one.spaces == other.spaces
    assert Box2D("LunarLander-v3") != Box2D("LunarLander-v3", backend="envpool")


@needs_envpool
def test_a_new_seed_starts_envpool_anew() -> None:
    env = EnvPoolEnv("LunarLander-v3", 2)
    first, second, again = (env.reset(seeds).copy() for seeds in ([1, 2], [3, 4], [1, 2]))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)
    env.close()
    env.close()


def test_a_missing_envpool_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "envpool", None)
    with pytest.raises(EnvError, match=r"^EnvPool is not installed .* pip install 'rldsl\[envpool\]' installs it\.$"):
        EnvPoolEnv("LunarLander-v3", 1)
