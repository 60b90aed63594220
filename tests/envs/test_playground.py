"""MuJoCo Playground behind the step contract; `make test` runs this in an environment of its own."""

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

pytest.importorskip("mujoco_playground", reason="the extra `playground` is not installed here")

import jax
import jax.numpy as jnp
import torch
from mujoco_playground import State, registry
from mujoco_playground._src import dm_control_suite, locomotion, manipulation

from rldsl.envs import EnvError, Step, VectorEnv
from rldsl.envs.playground import PlaygroundEnv, Task, _view, load
from rldsl.spec.catalog import DMControlId, RobotId
from rldsl.spec.environment import Playground
from rldsl.spec.implementation import implementation
from rldsl.store.states import join_state, split_state

LIMIT = 10
SEEDS = [5, 11, 7]
ACTIONS = np.random.default_rng(0).uniform(-1.3, 1.3, (25, 3, 1))


@pytest.fixture(scope="module")
def env() -> VectorEnv:
    """Three rows of a real task; compiled once, for it takes its time."""
    spec = Playground("CartpoleBalance", max_episode_steps=LIMIT)
    made: VectorEnv = implementation(spec)(spec, 3, 1)
    return made


def played(env: VectorEnv, actions: np.ndarray) -> Iterator[Step]:
    """Every step, as copies."""
    for action in actions:
        step = env.step(action)
        yield step._replace(**{name: one.copy() for name, one in step._asdict().items() if one is not None})


def run(env: VectorEnv, seeds: list[int], actions: np.ndarray) -> list[Step]:
    env.reset(seeds)
    return list(played(env, actions))


def assert_same_rows(one: list[Step], row: int, other: list[Step], other_row: int) -> None:
    for here, there in zip(one, other, strict=True):
        for name in ("observation", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(here, name)[row], getattr(there, name)[other_row])
        np.testing.assert_array_equal(
            here.final_observation[here.ended == row], there.final_observation[there.ended == other_row]
        )


def test_a_step_is_what_the_contract_says(env: VectorEnv) -> None:
    assert env.exact_resume and env.spaces.observation_shape == (5,)
    start = env.reset(SEEDS)
    assert (start.shape, start.dtype) == ((3, 5), np.float32)
    for at, step in enumerate(run(env, SEEDS, ACTIONS), 1):
        assert (step.observation.shape, step.observation.dtype) == ((3, 5), np.float32)
        assert (step.reward.shape, step.reward.dtype) == ((3,), np.float64) and (step.reward > 0).all()
        assert step.terminated.dtype == step.truncated.dtype == bool and not step.terminated.any()
        assert step.ended.tolist() == ([0, 1, 2] if at % LIMIT == 0 else [])
        assert step.final_observation.shape == (len(step.ended), 5)


def test_a_row_is_playgrounds_own_task(env: VectorEnv) -> None:
    task = registry.load("CartpoleBalance", config_overrides={"impl": "jax"})
    start, step = jax.jit(task.reset), jax.jit(task.step)
    key, reset_key = jax.random.split(jax.random.PRNGKey(SEEDS[1]))
    state = start(reset_key)
    np.testing.assert_allclose(env.reset(SEEDS)[1], state.obs, rtol=1e-6)
    for at, ours in enumerate(played(env, ACTIONS[: LIMIT + 3]), 1):
        state = step(state, jnp.clip(ACTIONS[at - 1, 1], -1.0, 1.0).astype(jnp.float32))
        np.testing.assert_allclose(ours.reward[1], state.reward, rtol=1e-5)
        if at == LIMIT:
            np.testing.assert_allclose(ours.final_observation[1], state.obs, rtol=1e-4, atol=1e-6)
            state = start(jax.random.split(key)[1])
        np.testing.assert_allclose(ours.observation[1], state.obs, rtol=1e-4, atol=1e-6)


def test_the_same_seeds_give_the_same_run_and_others_another(env: VectorEnv) -> None:
    first, again, other = (run(env, seeds, ACTIONS) for seeds in (SEEDS, SEEDS, [5, 12, 7]))
    for row in range(3):
        assert_same_rows(first, row, again, row)
    assert not np.array_equal(first[0].observation[1], other[0].observation[1])


def test_a_row_knows_nothing_of_its_neighbours(env: VectorEnv) -> None:
    changed = ACTIONS.copy()
    changed[:, [0, 2]] *= -0.5
    one, other = run(env, SEEDS, ACTIONS), run(env, [1, SEEDS[1], 2], changed)
    assert_same_rows(one, 1, other, 1)


def test_every_episode_starts_afresh(env: VectorEnv) -> None:
    starts = [env.reset(SEEDS).copy(), *(step.observation for step in played(env, ACTIONS) if step.ended.size)]
    assert len(starts) == 3
    assert len(np.unique(np.concatenate(starts), axis=0)) == 9


def test_what_a_step_gave_is_not_the_environments_memory(env: VectorEnv) -> None:
    expected = run(env, SEEDS, ACTIONS)
    env.reset(SEEDS).fill(3)
    for action, wanted in zip(ACTIONS, expected, strict=True):
        step = env.step(action.clip(-1, 1))
        np.testing.assert_array_equal(step.observation, wanted.observation)
        for one in (step.observation, step.reward, step.terminated, step.truncated, step.final_observation):
            one.fill(1)


def saved(env: VectorEnv, rows: slice) -> Any:
    """As it comes back from a checkpoint."""
    return join_state(*split_state(env.state(rows)))


def test_rows_go_on_exactly_where_they_were_saved(env: VectorEnv) -> None:
    last = run(env, SEEDS, ACTIONS[:7])[-1]
    whole = saved(env, slice(None))
    expected = list(played(env, ACTIONS[7:]))
    env.reset([1, 2, 3])
    np.testing.assert_array_equal(env.restore(whole), last.observation)
    going_on = list(played(env, ACTIONS[7:]))
    for row in range(3):
        assert_same_rows(going_on, row, expected, row)


def test_one_row_can_go_on_elsewhere(env: VectorEnv) -> None:
    run(env, SEEDS, ACTIONS[:7])
    last = saved(env, slice(2, 3))
    expected = list(played(env, ACTIONS[7:]))
    env.reset([1, 2, 3])
    env.restore(last, slice(0, 1))
    moved = ACTIONS[7:, ::-1]
    assert_same_rows(list(played(env, moved)), 0, expected, 2)


def test_a_state_that_does_not_fit_is_refused(env: VectorEnv) -> None:
    env.reset(SEEDS)
    with pytest.raises(EnvError, match=r"^The saved state has 3 rows, to be restored into 1\.$"):
        env.restore(env.state(), slice(0, 1))
    with pytest.raises(EnvError, match="another task"):
        env.restore({"steps": np.zeros(3)})


def test_jax_numpy_and_torch_share_memory() -> None:
    array = jnp.ones((4, 3))
    view = _view(array)
    assert view.ctypes.data == torch.from_dlpack(array).data_ptr() == array.unsafe_buffer_pointer()


class Counter:
    """A task small enough to know what should happen: it counts, ends at 5, and breaks below 0."""

    action_size = 1

    def reset(self, key: jax.Array) -> State:
        return self._state(jax.random.uniform(key))

    def step(self, state: State, action: jax.Array) -> State:
        return self._state(state.data + jnp.where(action[0] < 0, jnp.nan, action[0]))

    def _state(self, count: jax.Array) -> State:
        obs = {"state": count[None], "privileged_state": jnp.stack([count, count + 10])}
        done = ((count >= 5) | jnp.isnan(count)).astype(jnp.float32)
        return State(data=count, obs=obs, reward=count, done=done, metrics={}, info={})


def counters(action_repeat: int = 1, time_limit: int = 100) -> PlaygroundEnv:
    return PlaygroundEnv(Task(Counter(), action_repeat, time_limit), 2)


def test_the_policy_sees_the_state_of_a_dictionary() -> None:
    env = counters()
    assert env.spaces.observation_shape == (1,)
    assert env.reset([1, 2]).shape == (2, 1)


def test_the_critic_sees_the_privileged_state() -> None:
    env = counters(time_limit=2)
    assert env.spaces.critic_shape == (2,)
    start = env.reset([1, 2]).copy()
    np.testing.assert_allclose(env.critic_observation - start, [[0, 10], [0, 10]], rtol=1e-5)
    env.step(np.array([[1.0], [0.5]]))
    np.testing.assert_allclose(env.critic_observation - start, [[1, 11], [0.5, 10.5]], rtol=1e-5)
    last = env.step(np.array([[1.0], [0.5]]))
    assert last.ended.tolist() == [0, 1] and last.final_critic_observation.dtype == np.float32
    np.testing.assert_allclose(last.final_critic_observation - start, [[2, 12], [1, 11]], rtol=1e-5)
    np.testing.assert_allclose(env.critic_observation - last.observation, [[0, 10], [0, 10]], rtol=1e-5)


def test_the_privileged_state_goes_on_where_it_was_saved() -> None:
    env = counters()
    env.reset([1, 2])
    env.step(np.array([[1.0], [0.5]]))
    expected, state = env.critic_observation.copy(), saved(env, slice(1, 2))
    env.reset([3, 4])
    other = env.critic_observation[1].copy()
    env.restore(state, slice(0, 1))
    np.testing.assert_array_equal(env.critic_observation, [expected[1], other])


def test_what_was_seen_of_a_simulation_that_blew_up_is_finite_for_the_critic_too() -> None:
    env = counters()
    env.reset([1, 2])
    step = env.step(np.array([[-1.0], [1.0]]))
    assert np.isfinite(step.final_critic_observation).all() and np.isfinite(env.critic_observation).all()


def test_a_task_without_a_privileged_state_has_a_critic_as_any(env: VectorEnv) -> None:
    assert env.spaces.critic_shape is None
    env.reset(SEEDS)
    assert env.critic_observation is None and env.step(ACTIONS[0]).final_critic_observation is None


def test_the_end_of_a_task_terminates_and_only_its_row_starts_anew() -> None:
    env = counters()
    start = env.reset([1, 2]).copy()
    for _ in range(4):
        assert not env.step(np.array([[1.0], [0.0]])).ended.size
    step = env.step(np.array([[1.0], [0.0]]))
    assert step.terminated.tolist() == [True, False] and not step.truncated.any() and step.ended.tolist() == [0]
    np.testing.assert_allclose(step.final_observation, start[:1] + 5)
    np.testing.assert_array_equal(step.observation[1], start[1])
    assert 0 <= step.observation[0, 0] < 1 and step.observation[0, 0] != start[0, 0]


def test_a_repeated_action_sums_rewards_and_stops_where_the_episode_ends() -> None:
    env = counters(action_repeat=4, time_limit=2)
    (start,) = env.reset([1, 2])[:1, 0].copy()
    first = env.step(np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(first.reward[0], 4 * start + 1 + 2 + 3 + 4)
    second = env.step(np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(second.reward[0], start + 5)
    np.testing.assert_allclose(second.final_observation[0], start + 5)
    assert second.terminated.tolist() == [True, False] and second.truncated.all()


def test_a_simulation_that_blew_up_ends_its_episode_and_teaches_nothing() -> None:
    env = counters()
    env.reset([1, 2])
    step = env.step(np.array([[-1.0], [1.0]]))
    assert step.terminated.tolist() == [True, False] and step.reward[0] == 0
    assert np.isfinite(step.final_observation).all() and np.isfinite(step.observation).all()


def test_the_names_of_the_tasks_are_playgrounds() -> None:
    assert set(get_args(DMControlId)) == set(dm_control_suite.ALL_ENVS)
    assert set(get_args(RobotId)) == {*locomotion.ALL_ENVS, *manipulation.ALL_ENVS}


def test_the_tasks_of_dm_control_can_be_made() -> None:
    for id in get_args(DMControlId):
        made = registry.load(id, config_overrides={"impl": "jax"})
        assert made.action_size >= 1


def test_time_limit_and_action_repeat_are_the_tasks_own_unless_given() -> None:
    task = load(Playground("PendulumSwingup"), "jax")
    assert (task.action_repeat, task.time_limit) == (1, 1000)
    task = load(Playground("PendulumSwingup", action_repeat=4), "jax")
    assert (task.action_repeat, task.time_limit) == (4, 250)


@pytest.mark.skipif(Playground("Go1Getup").missing() is None, reason="the robot models are here")
def test_a_robot_without_its_models_is_one_sentence() -> None:
    spec = Playground("Go1Getup")
    with pytest.raises(
        EnvError, match=r"^Go1Getup cannot be made: its robot models are not in .*mujoco_menagerie; .*\.$"
    ):
        implementation(spec)(spec, 1, 1)
