"""Classic tasks: rows are independent, states are saved exactly, arrays are owned as the contract says."""

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl.envs import Continuous, EnvError, Step, VectorEnv, classic

IDS = list(classic.ENVIRONMENTS)


def actions_for(env: VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    rng, action = np.random.default_rng(seed), env.spaces.action
    if isinstance(action, Continuous):
        return rng.uniform(-1.0, 1.0, (steps, env.rows, *action.shape))
    return rng.integers(action.n, size=(steps, env.rows))


def copied(step: Step) -> Step:
    return Step(*(array.copy() for array in step[:6]))


def play(env: VectorEnv, actions: np.ndarray) -> list[Step]:
    return [copied(env.step(action)) for action in actions]


def assert_same(ours: list[Step], theirs: list[Step]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for a, b in zip(one[:6], other[:6], strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def through_files(state: dict) -> dict:
    """What a checkpoint does: arrays to npz, the rest to JSON."""
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    rest = {key: value for key, value in state.items() if key not in arrays}
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    return dict(np.load(file, allow_pickle=False)) | json.loads(json.dumps(rest))


@pytest.mark.parametrize("id", IDS)
def test_a_restored_state_goes_on_identically(id: str) -> None:
    env = classic.make(id, 3)
    env.reset([5, 6, 7])
    actions = actions_for(env, 1_300)
    observation = play(env, actions[:37])[-1].observation
    saved = through_files(env.state())
    expected = play(env, actions[37:])
    assert sum(step.ended.size for step in expected) >= 3

    other = classic.make(id, 3)
    np.testing.assert_array_equal(other.restore(saved), observation, strict=True)
    assert_same(play(other, actions[37:]), expected)


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("before", [0, 1])
def test_a_state_saved_at_the_start_of_an_episode_goes_on_identically(id: str, before: int) -> None:
    env, other = classic.make(id, 2), classic.make(id, 2)
    env.reset([1, 2])
    actions = actions_for(env, 40)
    play(env, actions[:before])
    other.restore(env.state())
    assert_same(play(other, actions[before:]), play(env, actions[before:]))


@pytest.mark.parametrize("id", IDS)
def test_a_saved_state_does_not_change_with_the_environment(id: str) -> None:
    env = classic.make(id, 2)
    env.reset([0, 1])
    saved = env.state()
    before = json.dumps({key: np.asarray(value).tolist() for key, value in saved.items()})
    play(env, actions_for(env, 600))
    assert json.dumps({key: np.asarray(value).tolist() for key, value in saved.items()}) == before


def test_a_state_of_other_rows_is_refused() -> None:
    env = classic.make("CartPole-v1", 2)
    env.reset([0, 1])
    with pytest.raises(EnvError, match="2 rows, to be restored into 3"):
        classic.make("CartPole-v1", 3).restore(env.state())


@pytest.mark.parametrize("id", IDS)
@settings(max_examples=3, deadline=None)
@given(seeds=st.lists(st.integers(0, 2**31 - 1), min_size=2, max_size=5))
def test_a_row_alone_goes_as_it_goes_among_others(id: str, seeds: list[int]) -> None:
    together = classic.make(id, len(seeds))
    first = together.reset(seeds).copy()
    actions = actions_for(together, 250)
    steps = play(together, actions)
    row = len(seeds) - 1
    alone = classic.make(id, 1)
    np.testing.assert_array_equal(alone.reset([seeds[row]])[0], first[row])
    for step, own in zip(steps, play(alone, actions[:, [row]]), strict=True):
        for name in ("observation", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(step, name)[row], getattr(own, name)[0], strict=True)
        np.testing.assert_array_equal(step.final_observation[step.ended == row], own.final_observation)


@pytest.mark.parametrize("id", IDS)
def test_observation_and_reward_are_reused_but_final_observations_are_the_callers(id: str) -> None:
    env = classic.make(id, 4)
    env.reset(range(4))
    steps = [env.step(action) for action in actions_for(env, 1_000)]
    assert all(step.observation is steps[0].observation and step.reward is steps[0].reward for step in steps)
    ends = [step for step in steps if step.ended.size]
    for step in ends:
        assert not np.shares_memory(step.final_observation, step.observation)
    assert len({step.final_observation.tobytes() for step in ends}) == len(ends) > 0


@pytest.mark.parametrize("id", IDS)
def test_what_a_caller_writes_into_a_step_changes_nothing(id: str) -> None:
    env, untouched = classic.make(id, 2), classic.make(id, 2)
    env.reset([0, 1]), untouched.reset([0, 1])
    for action in actions_for(env, 300):
        ours, theirs = env.step(action), untouched.step(action)
        assert_same([ours], [theirs])
        ours.observation.fill(9.0)
        ours.reward.fill(9.0)
        ours.terminated.fill(True)
        ours.truncated.fill(True)


@pytest.mark.parametrize("id", IDS)
def test_where_an_episode_ended_the_observation_is_the_next_ones_first(id: str) -> None:
    env = classic.make(id, 4)
    env.reset(range(4))
    for action in actions_for(env, 1_000):
        step = env.step(action)
        np.testing.assert_array_equal(step.ended, np.flatnonzero(step.terminated | step.truncated))
        assert len(step.final_observation) == len(step.ended)
        assert not (step.observation[step.ended] == step.final_observation).all(axis=1).any()
        assert (env.state()["steps"][step.ended] == 0).all()


def test_unknown_ids_and_wrong_numbers_of_rows_and_seeds_are_refused() -> None:
    with pytest.raises(EnvError, match=r"no classic environment 'CartPole-v9'.*CartPole-v1"):
        classic.make("CartPole-v9", 1)
    with pytest.raises(EnvError, match="at least one row"):
        classic.make("CartPole-v1", 0)
    with pytest.raises(EnvError, match="each of the 2 rows, but got 3"):
        classic.make("CartPole-v1", 2).reset([1, 2, 3])
