"""Any Gymnasium environment: true final observations, native actions, flattened observations, refusals."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import register

from rldsl.envs import Continuous, Discrete, EnvError
from rldsl.envs.gym import GymnasiumEnv
from rldsl.spec.environment import Gym, Wrapper
from rldsl.spec.implementation import implementation

UNIT = spaces.Box(-1.0, 1.0, (2,), np.float64)


class Counter(gymnasium.Env):
    """Counts steps in one reused array; its spaces are the test's."""

    def __init__(self, observation: spaces.Space = UNIT, action: spaces.Space = UNIT) -> None:
        self.observation_space, self.action_space = observation, action
        self.array = np.zeros(2)
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.array[:] = 0.0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.actions.append(action)
        self.array += 1.0
        return self.observe(), float(self.array[0]), False, False, {}

    def observe(self) -> Any:
        if isinstance(self.observation_space, spaces.Dict):
            return {"kind": 1, "where": self.array.copy()}
        return self.array


class Halved(gymnasium.RewardWrapper):
    """Pays a part of the reward; the half, unless told otherwise."""

    def __init__(self, env: gymnasium.Env, part: float = 0.5) -> None:
        super().__init__(env)
        self.part = part

    def reward(self, reward: Any) -> float:
        return reward * self.part


@pytest.fixture(autouse=True, scope="module")
def registered() -> Any:
    register("RoomCounter-v0", entry_point=Counter, max_episode_steps=3)
    yield
    del gymnasium.registry["RoomCounter-v0"]


@pytest.mark.parametrize(("id", "kwargs"), [("CartPole-v1", {}), ("LunarLander-v3", {"gravity": -9.0})])
def test_steps_equal_those_of_single_environments_stepped_by_hand(id: str, kwargs: dict[str, Any]) -> None:
    env, seeds = GymnasiumEnv(id, 3, kwargs), [11, 7, 5]
    singles = [gymnasium.make(id, **kwargs) for _ in seeds]
    starts = [single.reset(seed=seed)[0] for single, seed in zip(singles, seeds, strict=True)]
    np.testing.assert_array_equal(env.reset(seeds), starts)
    rng, endings = np.random.default_rng(0), 0
    for _ in range(400):
        actions = rng.integers(env.spaces.action.n, size=3)
        step, finals = env.step(actions), []
        for row, single in enumerate(singles):
            observation, reward, terminated, truncated, _ = single.step(actions[row])
            assert (step.reward[row], step.terminated[row], step.truncated[row]) == (reward, terminated, truncated)
            if terminated or truncated:
                finals.append(observation)
                observation, _ = single.reset()
            np.testing.assert_array_equal(step.observation[row], observation)
        assert len(step.ended) == len(finals) == len(step.final_observation)
        if finals:
            np.testing.assert_array_equal(step.final_observation, finals)
        endings += len(finals)
    assert endings > 5
    env.close()


def test_the_final_observation_survives_an_environment_that_reuses_its_array() -> None:
    env = GymnasiumEnv("RoomCounter-v0", 2)
    env.reset([0, 1])
    steps = [env.step(np.zeros((2, 2))) for _ in range(3)]
    np.testing.assert_array_equal(steps[-1].final_observation, np.full((2, 2), 3.0))
    np.testing.assert_array_equal(steps[-1].observation, np.zeros((2, 2)))
    assert steps[-1].truncated.all() and not steps[-1].terminated.any()
    assert steps[0].final_observation.shape == (0, 2) and steps[0].ended.size == 0


def test_a_time_limit_replaces_the_registered_one() -> None:
    env = GymnasiumEnv("RoomCounter-v0", 1, max_episode_steps=5)
    env.reset([0])
    assert [bool(env.step(np.zeros((1, 2))).truncated[0]) for _ in range(5)] == [False] * 4 + [True]


def test_continuous_actions_are_rescaled_to_the_bounds_shape_and_type_of_the_environment() -> None:
    box = spaces.Box(np.array([[-3.0], [0.0]], np.float32), np.array([[3.0], [1.0]], np.float32))
    env = GymnasiumEnv("RoomCounter-v0", 1, {"action": box})
    assert env.spaces.action == Continuous(np.array([-3.0, 0.0]), np.array([3.0, 1.0]))
    env.reset([0])
    env.step(np.array([[-1.0, 9.0]]))
    (seen,) = env._envs.envs[0].unwrapped.actions
    np.testing.assert_array_equal(seen, np.array([[-3.0], [1.0]], np.float32), strict=True)


def test_discrete_actions_start_at_zero_here_wherever_they_start_there() -> None:
    env = GymnasiumEnv("RoomCounter-v0", 1, {"action": spaces.Discrete(3, start=5)})
    assert env.spaces.action == Discrete(3)
    env.reset([0])
    env.step(np.array([2]))
    assert env._envs.envs[0].unwrapped.actions == [7]


def test_dict_observations_become_one_vector() -> None:
    space = spaces.Dict({"kind": spaces.Discrete(3), "where": spaces.Box(-9.0, 9.0, (2,), np.float64)})
    env = GymnasiumEnv("RoomCounter-v0", 2, {"observation": space})
    assert env.spaces.observation_shape == (5,)
    np.testing.assert_array_equal(env.reset([0, 1]), [[0, 1, 0, 0, 0]] * 2)
    steps = [env.step(np.zeros((2, 2))) for _ in range(3)]
    np.testing.assert_array_equal(steps[-1].final_observation, [[0, 1, 0, 3, 3]] * 2)
    assert steps[-1].final_observation.dtype == env.spaces.observation_dtype == np.float64


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(4),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(UNIT, None),
        spaces.Dict({"a": UNIT, "b": spaces.Tuple([spaces.Text(3)])}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_observations_that_are_no_vector_are_refused(space: spaces.Space) -> None:
    with pytest.raises(EnvError, match=r"^The observations of 'RoomCounter-v0' are .* cannot be flattened"):
        GymnasiumEnv("RoomCounter-v0", 1, {"observation": space})


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2)], ids=str)
def test_actions_other_than_discrete_and_box_are_refused(space: spaces.Space) -> None:
    with pytest.raises(EnvError, match=r"^The actions of 'RoomCounter-v0' are .* only Discrete and Box"):
        GymnasiumEnv("RoomCounter-v0", 1, {"action": space})


@pytest.mark.parametrize(
    ("id", "kwargs", "message"),
    [
        ("CartPol-v1", {}, r"no environment 'CartPol-v1'.*CartPole-v1"),
        ("CartPole-v7", {}, r"no environment 'CartPole-v7'.*CartPole-v1"),
        ("Nowhere/CartPole-v1", {}, r"no environment 'Nowhere/CartPole-v1'"),
        ("no_such_module:Env-v0", {}, r"'no_such_module:Env-v0' cannot be made: .*no_such_module"),
        ("CartPole-v1", {"wheels": 3}, r"'CartPole-v1' cannot be made: .*wheels"),
        ("not an id", {}, r"'not an id'"),
    ],
)
def test_an_environment_that_cannot_be_made_says_why_in_one_sentence(id: str, kwargs: dict, message: str) -> None:
    with pytest.raises(EnvError, match=message) as caught:
        GymnasiumEnv(id, 1, kwargs)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_its_state_cannot_be_saved() -> None:
    env = GymnasiumEnv("CartPole-v1", 1)
    assert not env.exact_resume
    with pytest.raises(EnvError, match="cannot save its state"):
        env.state()
    with pytest.raises(EnvError, match="cannot restore a state"):
        env.restore({})
    with pytest.raises(EnvError, match="each of the 1 rows, but got 2"):
        env.reset([0, 1])


def made(spec: Gym) -> GymnasiumEnv:
    return implementation(spec)(spec, spec.num_envs, 1)


def test_a_class_that_nobody_registered_is_named_by_its_module() -> None:
    env = made(Gym(f"{__name__}:Counter", num_envs=2, max_episode_steps=2))
    env.reset([0, 1])
    steps = [env.step(np.zeros((2, 2))) for _ in range(2)]
    np.testing.assert_array_equal(steps[-1].final_observation, np.full((2, 2), 2.0))
    assert steps[-1].truncated.all()


def test_a_registered_id_may_name_the_module_that_registers_it() -> None:
    env = made(Gym(f"{__name__}:RoomCounter-v0"))
    env.reset([0])
    assert [bool(env.step(np.zeros((1, 2))).truncated[0]) for _ in range(3)] == [False, False, True]


def test_wrappers_are_put_on_the_innermost_first() -> None:
    mine = f"{__name__}:Halved"
    clip = Wrapper("gymnasium.wrappers:ClipReward", kwargs={"max_reward": 0.5})
    for wrappers, rewards in (((mine, clip), [0.5, 0.5]), ((clip, Wrapper(mine, kwargs={"part": 0.1})), [0.05, 0.05])):
        env = made(Gym("RoomCounter-v0", wrappers=wrappers))
        env.reset([0])
        assert [env.step(np.zeros((1, 2))).reward[0] for _ in range(2)] == pytest.approx(rewards)


def test_a_wrapper_may_change_the_observations() -> None:
    env = made(Gym("RoomCounter-v0", wrappers=("gymnasium.wrappers:TimeAwareObservation",)))
    assert env.spaces.observation_shape == (3,)
    env.reset([0])
    assert env.step(np.zeros((1, 2))).observation.shape == (1, 3)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            Gym("CartPole-v1", wrappers=("nowhere:Mine",)),
            r"^The wrapper 'nowhere:Mine' .* No module named 'nowhere'\.$",
        ),
        (
            Gym("CartPole-v1", wrappers=("gymnasium.wrappers:ClipRewards",)),
            r"cannot be applied: .* nearest are ClipReward",
        ),
        (
            Gym("CartPole-v1", wrappers=(Wrapper("gymnasium.wrappers:ClipReward", kwargs={"most": 1}),)),
            r"^The wrapper 'gymnasium.wrappers:ClipReward' cannot be applied: .*'most'\.$",
        ),
        (
            Gym("CartPole-v1", wrappers=("builtins:repr",)),
            r"^The wrapper 'builtins:repr' cannot be applied: it is not a gymnasium.Wrapper\.$",
        ),
        (Gym(f"{__name__}:Countr"), r"^There is no environment '.*:Countr' .*; the nearest are Counter, "),
        (
            Gym("collections:Counter"),
            r"^The environment 'collections:Counter' cannot be made: Counter is not a gymnasium.Env",
        ),
    ],
    ids=lambda value: value.id if isinstance(value, Gym) else "",
)
def test_what_is_not_there_or_does_not_fit_is_one_sentence(spec: Gym, message: str) -> None:
    with pytest.raises(EnvError, match=message) as caught:
        made(spec)
    assert "\n" not in str(caught.value)
