"""`enjoy`: the same episodes with and without a video, the policy of the checkpoint, errors of one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from rldsl import Agent, Atari, Box2D, Classic, Environment, Gym, MuJoCo, Random
from rldsl.envs.contract import EnvError
from rldsl.play.enjoy import main
from rldsl.play.rendering import make_rendered_env
from rldsl.play.video import VideoRecorder
from rldsl.store.checkpoint import load_checkpoint
from tests.agents.tiny import Chain
from tests.train.packs import PPO_SMALL, session, train

FALLING = Gym("CartPole-v1", num_envs=2)


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MUJOCO_GL", "egl")  # what `enjoy` would set for good
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def trained(runs: Path, env: Environment, agent: Agent = PPO_SMALL) -> Path:
    """The directory of a session that has learned a little."""
    return train(runs, session(agent, env, frames=256)).directories[0].path


def enjoyed(directory: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([str(directory), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def played(document: dict[str, Any]) -> list[tuple[float, int]]:
    return [(one["return"], one["steps"]) for one in document["episodes"]]


def frames(path: Path) -> list[np.ndarray]:
    film, found = cv2.VideoCapture(str(path)), []
    while (answer := film.read())[0]:
        found.append(answer[1])
    return found


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (PPO_SMALL, Classic("CartPole-v1", num_envs=2)),
        (PPO_SMALL, Gym("Pendulum-v1", num_envs=2, max_episode_steps=6)),
        (Random(), Box2D("LunarLander-v3", num_envs=2, max_episode_steps=6)),
    ],
    ids=lambda spec: spec.kind,
)
def test_filmed_or_not_the_episodes_are_the_same(
    agent: Agent, env: Environment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = trained(tmp_path, env, agent)
    plain = enjoyed(directory, capsys, "--episodes", "2")
    filmed = enjoyed(directory, capsys, "--episodes", "2", "--video", str(tmp_path / "films"))
    assert played(plain) == played(filmed)
    files = [Path(one["video"]) for one in filmed["episodes"]]
    assert sorted((tmp_path / "films").iterdir()) == files
    for path, (_, steps) in zip(files, played(filmed), strict=True):
        assert len(frames(path)) == steps + 1, "the first picture, and one after each step"
    assert frames(files[0])[0].std() > 1, "there is something to see"


def test_mujoco_is_filmed_without_a_screen(tmp_path: Path) -> None:
    directory = trained(
        tmp_path, MuJoCo("InvertedPendulum-v5", num_envs=2, options={"reset_noise_scale": 0.1}), Random()
    )
    command = [sys.executable, "-m", "rldsl.play.enjoy", str(directory), "--episodes", "1", "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}

    def ran(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], capture_output=True, text=True, env=environment, check=False)

    filmed = ran("--video", str(tmp_path / "films"))
    if filmed.returncode:
        sentence = filmed.stderr.strip().splitlines()[-1]
        assert sentence.startswith("error: ") and "InvertedPendulum-v5" in sentence
        assert sentence.endswith("and say which by MUJOCO_GL=egl or MUJOCO_GL=osmesa.")
        pytest.skip("there is no OpenGL here")
    assert played(json.loads(filmed.stdout)) == played(json.loads(ran().stdout))
    assert frames(Path(json.loads(filmed.stdout)["episodes"][0]["video"]))[0].std() > 1


def test_the_policy_is_that_of_the_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = trained(tmp_path, FALLING)
    best, last = (enjoyed(directory, capsys, "--checkpoint", which) for which in ("best", "last"))
    assert last["frame"] == 256
    assert best["frame"] == load_checkpoint(directory / "checkpoints", tag="best").frame
    assert len(best["episodes"]) == 5 and best["mean_return"] == np.mean([one for one, _ in played(best)])


def test_chance_is_used_only_where_it_is_asked_for_and_is_the_same_every_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = trained(tmp_path, FALLING)
    sure, drawn = enjoyed(directory, capsys), enjoyed(directory, capsys, "--stochastic")
    assert played(sure) != played(drawn)
    assert played(enjoyed(directory, capsys, "--stochastic")) == played(drawn)
    assert played(enjoyed(directory, capsys)) == played(sure)


def test_it_says_each_episode_and_the_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = train(tmp_path, session(Random(), Chain(num_envs=2))).directories[0].path
    capsys.readouterr()
    assert main([str(directory), "--episodes", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("episode 1: return ") and lines[0].endswith(", length 5")
    assert lines[2].startswith("mean return ") and lines[2].endswith(" over 2 episodes")


def test_screens_are_filmed_as_the_agent_sees_them(tmp_path: Path) -> None:
    film = VideoRecorder(tmp_path, "pong")
    env = make_rendered_env(Atari("Pong", max_frames=40), film)
    observation, endings = env.reset([3]), 0
    shown = [observation[0, -1].copy()]
    while not endings:
        step = env.step(np.array([2]))
        endings = step.ended.size
        shown.append((step.final_observation if endings else step.observation)[0, -1].copy())
    film.close()
    env.close()
    pictures = frames(tmp_path / "pong-1.mp4")
    assert len(pictures) == len(shown) and pictures[0].shape == (336, 336, 3)
    assert np.abs(pictures[-1][::4, ::4, 0].astype(int) - shown[-1]).mean() < 12
    assert list(tmp_path.iterdir()) == [tmp_path / "pong-1.mp4"]


def sentence(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([str(one) for one in arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_what_is_in_the_way_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = train(tmp_path, session(Random(), Chain(num_envs=2))).directories[0].path
    capsys.readouterr()
    assert sentence([tiny, "--video", tmp_path / "x"], capsys).endswith("cannot be filmed: Chain has no renderer.")
    assert "no screen here" in sentence([tiny, "--render"], capsys)
    assert "cannot be read" in sentence([tmp_path / "nowhere"], capsys)
    assert "cannot write" in sentence([tiny, "--video", tiny / "session.json" / "x"], capsys)


def test_an_environment_without_pictures_is_refused() -> None:
    with pytest.raises(EnvError, match="Pong cannot be shown in a window: Atari has no renderer"):
        make_rendered_env(Atari("Pong"), None)
