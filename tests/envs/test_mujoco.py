"""MuJoCo tasks: states are saved exactly, rows and threads do not matter, an older mujoco falls back to Gymnasium."""

import io
import json
import subprocess
import sys
import weakref

import mujoco
import numpy as np
import pytest

import rldsl.envs.make
import rldsl.envs.mujoco
from rldsl import MuJoCo
from rldsl.envs import EnvError, Step, VectorEnv
from rldsl.envs.gym import GymnasiumEnv
from rldsl.envs.mujoco import make
from rldsl.envs.mujoco.force_batch import ForceBatch
from rldsl.envs.mujoco.tasks import TASKS

IDS = list(TASKS)
OF_EACH_PHYSICS = ["Hopper-v5", "Humanoid-v5"]
"""A plain batch and one with contact forces."""


def actions_for(env: VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, env.rows, *env.spaces.action.shape))


def play(env: VectorEnv, actions: np.ndarray) -> list[Step]:
    return [Step(*(array.copy() for array in env.step(action)[:6])) for action in actions]


def assert_same(ours: list[Step], theirs: list[Step]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for a, b in zip(one[:6], other[:6], strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def of_rows(steps: list[Step], rows: slice) -> list[tuple[np.ndarray, ...]]:
    return [(step.observation[rows], step.reward[rows], step.terminated[rows], step.truncated[rows]) for step in steps]


def assert_same_rows(ours: list[Step], rows: slice, theirs: list[Step], their_rows: slice) -> None:
    for one, other in zip(of_rows(ours, rows), of_rows(theirs, their_rows), strict=True):
        for a, b in zip(one, other, strict=True):
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
@pytest.mark.parametrize("before", [0, 1, 37])
def test_a_restored_state_goes_on_identically(id: str, before: int) -> None:
    env, other = make(MuJoCo(id), 3), make(MuJoCo(id), 3)
    observation = env.reset([5, 6, 7]).copy()
    actions = actions_for(env, before + 120)
    if before:
        observation = play(env, actions[:before])[-1].observation
    saved = through_files(env.state())
    expected = play(env, actions[before:])

    np.testing.assert_array_equal(other.restore(saved), observation, strict=True)
    assert_same(play(other, actions[before:]), expected)
    assert env.exact_resume


@pytest.mark.parametrize("id", IDS)
def test_a_state_restored_amid_other_episodes_wipes_out_what_was_there(id: str) -> None:
    env, other = make(MuJoCo(id), 2), make(MuJoCo(id), 2)
    env.reset([0, 1]), other.reset([8, 9])
    actions = actions_for(env, 60)
    play(env, actions[:20])
    play(other, actions_for(other, 33, seed=1))
    other.restore(env.state())
    assert_same(play(other, actions[20:]), play(env, actions[20:]))


@pytest.mark.parametrize("id", IDS)
def test_one_members_rows_go_on_in_another_batch(id: str) -> None:
    env, other = make(MuJoCo(id), 4), make(MuJoCo(id), 5)
    env.reset(range(4)), other.reset(range(10, 15))
    theirs, ours = slice(2, 4), slice(1, 3)
    play(env, actions_for(env, 20))
    play(other, actions_for(other, 7))
    untouched = make(MuJoCo(id), 5)
    untouched.restore(other.state())

    observation = other.restore(through_files(env.state(theirs)), ours)
    np.testing.assert_array_equal(observation[ours], env.state()["observation"][theirs])
    actions = actions_for(other, 50, seed=1)
    of_env = actions_for(env, 50, seed=2)
    of_env[:, theirs] = actions[:, ours]
    went, expected = play(other, actions), play(untouched, actions)
    assert_same_rows(went, ours, play(env, of_env), theirs)
    assert_same_rows(went, slice(3, 5), expected, slice(3, 5))


def test_a_saved_state_is_a_copy_and_of_as_many_rows() -> None:
    env = make(MuJoCo("Hopper-v5"), 2)
    env.reset([0, 1])
    saved = env.state()
    before = json.dumps({key: np.asarray(value).tolist() for key, value in saved.items()})
    play(env, actions_for(env, 50))
    assert json.dumps({key: np.asarray(value).tolist() for key, value in saved.items()}) == before
    with pytest.raises(EnvError, match="has 2 rows, to be restored into 1"):
        env.restore(saved, slice(0, 1))


@pytest.mark.parametrize("id", OF_EACH_PHYSICS)
def test_the_number_of_threads_does_not_matter(id: str) -> None:
    one, two = make(MuJoCo(id), 5, threads=1), make(MuJoCo(id), 5, threads=2)
    np.testing.assert_array_equal(one.reset(range(5)), two.reset(range(5)))
    actions = actions_for(one, 150)
    assert_same(play(one, actions), play(two, actions))


@pytest.mark.parametrize("id", IDS)
def test_a_row_alone_goes_as_it_goes_among_others(id: str) -> None:
    together, alone = make(MuJoCo(id), 3), make(MuJoCo(id), 1)
    together.reset([3, 4, 5]), alone.reset([5])
    actions = actions_for(together, 120)
    assert_same_rows(play(together, actions), slice(2, 3), play(alone, actions[:, 2:]), slice(0, 1))


@pytest.mark.parametrize("id", IDS)
def test_what_a_caller_writes_into_a_step_changes_nothing(id: str) -> None:
    env, untouched = make(MuJoCo(id), 2), make(MuJoCo(id), 2)
    env.reset([0, 1]).fill(9.0), untouched.reset([0, 1])
    for action in actions_for(env, 60):
        ours, theirs = env.step(action), untouched.step(action)
        assert_same([ours], [theirs])
        for array in ours[:6]:
            array.fill(1)


def test_wrong_numbers_of_rows_and_seeds_are_refused() -> None:
    with pytest.raises(EnvError, match="at least one row"):
        make(MuJoCo("Hopper-v5"), 0)
    with pytest.raises(EnvError, match="each of the 2 rows, but got 3"):
        make(MuJoCo("Hopper-v5"), 2).reset([1, 2, 3])


def test_a_mujoco_without_batches_goes_through_gymnasium_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = MuJoCo("Hopper-v5", options={"healthy_z_range": (0.9, None), "frame_skip": 3})
    ours = rldsl.envs.make.mujoco(spec, 2, threads=1)
    assert not capsys.readouterr().err
    monkeypatch.setattr(rldsl.envs.mujoco, "has_batches", lambda: False)
    fallback = rldsl.envs.make.mujoco(spec, 2, threads=1)
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and "no `mujoco.batch`: Hopper-v5 runs through Gymnasium" in warning
    assert isinstance(fallback, GymnasiumEnv) and not isinstance(ours, GymnasiumEnv)
    np.testing.assert_array_equal(ours.reset([1, 2]), fallback.reset([1, 2]))
    actions = actions_for(ours, 60)
    assert_same(play(ours, actions), play(fallback, actions))


def test_the_package_imports_mujoco_only_to_make_rows() -> None:
    code = "import rldsl.envs.mujoco, sys; sys.exit(any(m in sys.modules for m in ('mujoco', 'gymnasium', 'torch')))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_batch_with_contact_forces_says_what_went_wrong() -> None:
    ball = '<body pos="0 0 1"><freejoint/><geom size="1"/></body>'
    xml = f'<mujoco><size memory="20K"/><worldbody>{ball * 20}</worldbody></mujoco>'
    batch = ForceBatch(mujoco.MjModel.from_xml_string(xml), nsim=3, nthread=2)
    with pytest.raises(ValueError, match="no field 'cfrc_inn'"):
        batch.bind("cfrc_inn")
    with pytest.raises(RuntimeError, match=r"MuJoCo raised in row 1: .*out of memory"):
        batch.forward(np.array([1, 2]))


def test_a_batch_with_contact_forces_is_freed_with_its_environment() -> None:
    env = make(MuJoCo("Ant-v5"), 2)
    batch = weakref.ref(env._batch)
    env.reset([0, 1])
    del env
    assert batch() is None
