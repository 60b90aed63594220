"""The last and the best checkpoint: both are there, the best is the best, in every life."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from rldsl import PPO
from rldsl.agents.base import AgentContext
from rldsl.agents.ppo import PPOAgent
from rldsl.envs.classic import make
from rldsl.spec.session import Session
from rldsl.store.checkpoint import checkpoint_frames, load_checkpoint
from rldsl.train.pack import Pack
from tests.agents.tiny import Bandit
from tests.project import events
from tests.train.packs import PPO_SMALL, curve, session, train

SLOW = PPO_SMALL.with_(lr=1e-4)
"""Learns so little that chance decides when it is best: not at the end."""


def seen_flat(runs: Path, one: Session, until: int | None = None) -> tuple[Pack, dict[int, torch.Tensor]]:
    """A pack, and its parameters after each iteration."""
    flat: dict[int, torch.Tensor] = {}

    def look(pack: Pack) -> str | None:
        flat[pack.frame] = pack.agent.update.flat[0].clone()
        return "enough" if pack.frame == until else None

    return train(runs, one, stop=look), flat


def best_frame(path: Path) -> int:
    points = curve(path)
    return int(points["frame"][np.nanargmax(points["episode_return"])])


def test_the_best_checkpoint_is_the_policy_that_reached_the_best_return(tmp_path: Path) -> None:
    one = session(SLOW, frames=1280)
    pack, flat = seen_flat(tmp_path, one)
    directory = pack.directories[0]
    best, last = load_checkpoint(directory.checkpoints, tag="best"), load_checkpoint(directory.checkpoints)
    assert best and last and last.frame == 1280
    assert best.frame == best_frame(directory.path) < 1280, "the best must not be the last, or nothing is shown"
    np.testing.assert_array_equal(best.state["agent"]["update"]["flat"], flat[best.frame])
    np.testing.assert_array_equal(last.state["agent"]["update"]["flat"], flat[1280])


def test_the_best_outlives_a_stop(tmp_path: Path) -> None:
    one = session(SLOW, frames=1280)
    whole = train(tmp_path / "whole", one).directories[0]
    at = best_frame(whole.path)
    for frame in (at + 64, at + 128):
        seen_flat(tmp_path / "broken", one, until=frame)
    broken = train(tmp_path / "broken", one).directories[0]
    ours, expected = (load_checkpoint(directory.checkpoints, tag="best") for directory in (broken, whole))
    assert ours and expected and ours.frame == expected.frame == at
    np.testing.assert_array_equal(ours.state["agent"]["update"]["flat"], expected.state["agent"]["update"]["flat"])


def test_a_policy_that_is_loaded_acts_as_the_one_that_was_saved(tmp_path: Path) -> None:
    pack = train(tmp_path, session(PPO_SMALL.with_(normalize_observations=True)))
    saved = load_checkpoint(pack.directories[0].checkpoints)
    assert saved
    setting = AgentContext([pack.trial.agent], [99], make("CartPole-v1", 1).spaces, num_envs=2, frames=512)
    loaded = PPOAgent(setting)
    loaded.restore_policy(0, saved.state["agent"])
    seen, starts = np.random.default_rng(0).normal(size=(1, 7, 4)), np.ones((1, 7), bool)
    for deterministic in (True, False):
        ours, expected = (one.policy(7, deterministic, [3])(seen, starts) for one in (loaded, pack.agent))
        np.testing.assert_array_equal(ours, expected)


def test_checkpoints_come_every_so_many_frames_and_two_are_kept(tmp_path: Path) -> None:
    pack = train(tmp_path, session(PPO_SMALL, frames=640, checkpoint_every=128))
    told = [one["frame"] for one in events(pack.directories[0].path) if one["event"] == "checkpoint"]
    assert sorted(set(told)) == [128, 256, 384, 512, 576, 640]  # 576: before the last iteration, for longer runs
    assert checkpoint_frames(pack.directories[0].checkpoints) == [640, 576]


def test_a_policy_of_a_tiny_task_is_found_again_in_the_best_checkpoint(tmp_path: Path) -> None:
    agent = PPO(rollout=8, minibatch=32, epochs=4, lr=0.01)
    pack = train(tmp_path, session(agent, Bandit(num_envs=8), frames=3200))
    best = load_checkpoint(pack.directories[0].checkpoints, tag="best")
    assert best
    pack.agent.restore_policy(0, best.state["agent"])
    assert pack.agent.policy(1, True, [0])(np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool)) == 1
