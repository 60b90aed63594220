"""A user's own Gymnasium environments: exact resume, numbers of `info`, values that are not finite."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rldsl import DQN, PPO, Gym, SpecError, Wrapper
from rldsl.envs.contract import EnvError
from rldsl.extend import make_vector_env
from rldsl.spec.base import canonical
from tests.project import events, rows, work
from tests.train.attempts import Attempts, moments
from tests.train.packs import PPO_SMALL, REPLAY, curve, session, train
from tests.train.test_resume import assert_same_checkpoints

MODULE = "tests.train.walks"
SAVED = Gym(
    f"{MODULE}:SavedWalk",
    num_envs=2,
    max_episode_steps=40,
    wrappers=(Wrapper(f"{MODULE}:Momentum"), Wrapper("gymnasium.wrappers:ClipReward", kwargs={"max_reward": 2.0})),
    metrics=("success", "distance"),
)


@pytest.mark.parametrize("agent", [PPO_SMALL, DQN(**REPLAY)], ids=["ppo", "dqn"])
def test_an_environment_that_saves_its_state_resumes_exactly(agent: Any, tmp_path: Path) -> None:
    one = session(agent, SAVED, frames=1024, log_every=64, checkpoint_every=128)
    whole, broken = Attempts(tmp_path / "whole", one), Attempts(tmp_path / "broken", one)
    assert whole.run_to_end() == 0
    for points, later in moments("ppo", 16):
        broken.kill(points, later)
    assert broken.run_to_end() == 0
    assert work(broken.paths[0]) == work(whole.paths[0]) and len(work(whole.paths[0])) == 16
    assert any(one["frame"] > 0 for one in events(broken.paths[0]) if one["event"] == "started")
    assert_same_checkpoints(broken.paths[0], whole.paths[0])


@pytest.mark.parametrize(
    ("env", "exact"),
    [
        (SAVED, True),
        (Gym(f"{MODULE}:Walk"), False),
        (Gym(f"{MODULE}:SavedWalk", wrappers=(Wrapper(f"{MODULE}:Forgetful"),)), False),
        (Gym("CartPole-v1"), False),
    ],
)
def test_an_environment_is_exact_only_if_all_of_its_parts_are(env: Gym, exact: bool) -> None:
    assert make_vector_env(env).exact_resume is exact


def test_rows_are_restored_one_by_one() -> None:
    envs = make_vector_env(SAVED, 3)
    envs.reset([1, 2, 3])
    actions = np.random.default_rng(0).integers(2, size=(60, 3))
    for action in actions[:20]:
        envs.step(action)
    saved = envs.state(slice(1, 2))
    expected = [envs.step(action).observation[1].copy() for action in actions[20:]]
    envs.reset([4, 5, 6])
    restored = envs.restore(saved, slice(1, 2))
    np.testing.assert_array_equal(restored[1], saved["observation"][0])
    for action, observation in zip(actions[20:], expected, strict=True):
        np.testing.assert_array_equal(envs.step(action).observation[1], observation)


def test_numbers_of_info_are_logged(tmp_path: Path) -> None:
    pack = train(tmp_path, session(PPO_SMALL, SAVED, frames=1024))
    path, recorder = pack.directories[0].path, pack.recorders[0]
    columns = curve(path)
    assert list(columns)[-2:] == ["success", "distance"]
    assert columns["success"][-1] == pytest.approx(np.mean(recorder.numbers["success"]))
    assert len(recorder.numbers["distance"]) == min(100, recorder.episodes) > 5
    assert 0 <= columns["success"][-1] <= 1 and 0 < columns["distance"][-1] < 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accumulated = EventAccumulator(str(path / "tb")).Reload()
    assert {"train/success", "train/distance"} <= set(accumulated.Tags()["scalars"])


def test_without_metrics_nothing_changes(tmp_path: Path) -> None:
    """Neither the identity nor the records of an environment that logs none contain the field."""
    plain, logging = Gym("CartPole-v1"), Gym("CartPole-v1", metrics=("x",))
    assert "metrics" not in plain.data() and "metrics" not in canonical(plain)
    assert logging.data()["metrics"] == ["x"] and '"metrics":["x"]' in canonical(logging)
    assert Gym.parse(logging.data()) == logging and Gym.parse(plain.data()) == plain
    train(tmp_path, session(PPO(rollout=32, minibatch=32), plain, frames=64))
    assert "metrics" not in rows(next(tmp_path.glob("*/*/*")))[0]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (("sucess",), "has no 'sucess'; did you mean success"),
        (("side",), "'side' in the info of .* is a str, not a number"),
    ],
)
def test_metrics_that_are_not_there_are_one_sentence(metrics: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=message):
        train(tmp_path, session(PPO_SMALL, SAVED.with_(metrics=metrics), frames=1024))


def test_names_of_metrics_are_checked(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="metrics"):
        Gym("CartPole-v1", metrics=("a,b",))
    with pytest.raises(SpecError, match="twice"):
        Gym("CartPole-v1", metrics=("a", "a"))
    with pytest.raises(SpecError, match="the metric length has the name of a column"):
        train(tmp_path, session(PPO_SMALL, SAVED.with_(metrics=("length",))))


@pytest.mark.parametrize(("what", "value"), [("reward", "nan"), ("observation", "inf")])
def test_what_is_not_finite_names_environment_row_and_step(what: str, value: str, tmp_path: Path) -> None:
    env = Gym(f"{MODULE}:Broken", num_envs=2, kwargs={"what": what})
    with pytest.raises(EnvError, match=f"Broken: the {what} of environment 0 .seed 7. is {value} after step 3"):
        train(tmp_path, session(PPO_SMALL, env, seed=7))
    (path,) = tmp_path.glob("*/*/*")
    assert events(path)[-1]["event"] == "failed" and "after step 3" in events(path)[-1]["reason"]
