"""Exported policies: the file acts like the policy, also without rldsl, for every algorithm."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import numpy as np
import onnxruntime
import pytest
import torch

import rldsl
from rldsl import DQN, PPO, Agent, Atari, Classic, Conv, Environment, Gym
from rldsl.play.export import main
from rldsl.play.policy_module import PolicyModule
from tests.project import Project
from tests.train.packs import CASES, NET, NORMALIZED, PPO_SMALL, REPLAY, session, train

PT2_CASES = (
    *("reinforce", "sarsa_epsilon", "a2c_n_step", "ppo_recurrent", "ppo_asymmetric", "dqn", "sac", "sac_discrete"),
    *("crossq", "crossq_discrete"),
)
ONNX_CASES = ("ppo_pendulum", "dqn_prioritized", "sac", "crossq", "a2c_recurrent")
IMAGES = DQN(**{**REPLAY, "net": Conv(layers=((4, 8, 4),), hidden=(16,)), "learning_starts": 16})


def trained(runs: Path, agent: Agent, env: Environment, frames: int = 256) -> Path:
    return train(runs, session(agent, env, frames=frames)).directories[0].path


def exported(directory: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    assert main([str(directory), str(out), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [*((name, ".pt2") for name in PT2_CASES), *((name, ".onnx") for name in ONNX_CASES)],
)
def test_every_algorithm_is_exported_and_verified(
    name: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, env = CASES[name]
    summary = exported(trained(tmp_path / "runs", agent, env), tmp_path / f"policy{suffix}", capsys)
    assert summary["observations"] == 272
    assert float(summary["largest_difference"]) < 1e-4  # type: ignore[arg-type]
    recurrent = "recurrent" in name
    assert list(summary["inputs"]) == ["observation", *(["state"] if recurrent else [])]  # type: ignore[call-overload]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"policy{suffix}"]


def test_onnx_plays_without_rldsl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Raw observations of Gymnasium in, actions of its action space out."""
    directory = trained(tmp_path / "runs", NORMALIZED, Classic("Pendulum-v1", num_envs=2), frames=512)
    exported(directory, tmp_path / "policy.onnx", capsys)
    run, policy = onnxruntime.InferenceSession(tmp_path / "policy.onnx"), rldsl.load_policy(directory)
    env = gymnasium.make("Pendulum-v1")
    observation, _ = env.reset(seed=3)
    for _ in range(20):
        (actions,) = run.run(["action"], {"observation": observation[None]})
        assert env.action_space.contains(actions[0])
        np.testing.assert_allclose(actions[0], policy(observation), atol=1e-4)
        observation, *_ = env.step(actions[0])
    assert run.get_modelmeta().custom_metadata_map["env"] == "Pendulum-v1"


def test_a_recurrent_program_takes_and_returns_its_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent, env = CASES["ppo_recurrent"]
    directory = trained(tmp_path / "runs", agent, env)
    exported(directory, tmp_path / "policy.pt2", capsys)
    program, policy = torch.export.load(tmp_path / "policy.pt2").module(), rldsl.load_policy(directory)
    state = torch.zeros(3, 16)
    for observation in np.random.default_rng(1).normal(size=(5, 3, 3)).astype(np.float32):
        action, state = program(torch.from_numpy(observation), state)
        np.testing.assert_allclose(action.numpy(), policy(observation), atol=1e-5)
    assert state.abs().sum() > 0


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_images(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = trained(tmp_path / "runs", IMAGES, Atari("Pong", num_envs=1), frames=32)
    summary = exported(directory, tmp_path / f"policy{suffix}", capsys)
    assert summary["inputs"] == {"observation": "uint8 [N, 4, 84, 84]"}


def test_discrete_actions_that_do_not_start_at_0_and_shaped_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = Gym("tests.play.spaces:Shaped", num_envs=1)
    summary = exported(trained(tmp_path / "a", PPO_SMALL, env, 64), tmp_path / "shaped.pt2", capsys)
    assert summary["outputs"] == {"action": "float32 [N, 2, 2]"}
    env = Gym("tests.play.spaces:Shifted", num_envs=1)
    exported(trained(tmp_path / "b", PPO_SMALL, env, 64), tmp_path / "shifted.pt2", capsys)
    action = torch.export.load(tmp_path / "shifted.pt2").module()(torch.zeros(4, 2))
    assert action.min() >= 5 and action.max() <= 7


def test_a_file_that_differs_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = trained(tmp_path / "runs", PPO_SMALL, Classic("Pendulum-v1", num_envs=2))
    correct = PolicyModule._scaled
    monkeypatch.setattr(PolicyModule, "_scaled", lambda self, output: correct(self, output) + 0.01)
    assert main([str(directory), str(tmp_path / "policy.pt2")]) == 2
    assert "was not written: at random observations its actions differ" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.pt2")) and not list(tmp_path.glob(".*"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_command(project: Project) -> None:
    train(project.runs, session(PPO(net=NET, rollout=32, minibatch=32), Classic("CartPole-v1"), frames=64))
    id = project.session.parent.name.rpartition("-")[2]
    ran = project.rldsl("export", id, "out/policy.pt2")
    assert ran.returncode == 0, ran.stderr
    assert f"out/policy.pt2: the best checkpoint of {id}-s0" in ran.stdout
    assert "observation float32 [N, 4]" in ran.stdout and "action int64 [N]" in ran.stdout
    assert (project.root / "out/policy.pt2").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nix", "policy.onnx"), "no session in runs matches 'nix'"),
        (("nix", "policy.txt"), "policy.txt must end in .onnx or .pt2"),
        (("seed-0", "policy.pt2", "--checkpoint", "bst"), "--checkpoint has no 'bst'; did you mean best?"),
        (("seed-0", "policy.pt2"), "RandomAgent has no network to export"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(project: Project, arguments: tuple[str, ...], message: str) -> None:
    train(project.runs, session(rldsl.Random(), Classic("CartPole-v1"), frames=8))
    ran = project.rldsl("export", *arguments)
    assert ran.returncode == 2 and f"error: {message}" in ran.stderr and "Traceback" not in ran.stderr
    assert not list(project.root.glob("*.pt2"))
