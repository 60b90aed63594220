"""Settings that are fine alone and do not fit together."""

from __future__ import annotations

import pytest

from rldsl import MLP, PPO, Atari, Box2D, Classic, Gym, MuJoCo, Playground, SpecError
from rldsl.spec.budget import Budget
from rldsl.spec.environment import Environment
from rldsl.spec.experiment import Experiment, Trial

BATCH = r"rollout \* num_envs = 128 \* 4 = 512"


def trial(frames: float = 1e5, **agent: object) -> Trial:
    return Trial(agent=PPO(rollout=128, **agent), env=Classic("CartPole-v1", num_envs=4), budget=Budget(frames))


def test_a_minibatch_divides_its_batch() -> None:
    with pytest.raises(SpecError, match=rf"PPO\.minibatch = 100 does not divide the batch of {BATCH}; 64 or 128 would"):
        trial(minibatch=100)
    assert trial(minibatch=512).agent.minibatch == 512


def test_a_minibatch_is_not_larger_than_its_batch() -> None:
    with pytest.raises(SpecError, match=rf"PPO\.minibatch = 1024 is more than the batch of {BATCH}"):
        trial(minibatch=1024)


def test_the_frames_hold_at_least_one_batch() -> None:
    with pytest.raises(SpecError, match=rf"frames = 511 is less than one batch of {BATCH}: nothing would be learned"):
        trial(frames=511)
    assert trial(frames=512).budget.frames == 512


def test_a_shared_trunk_has_no_critic_of_its_own() -> None:
    with pytest.raises(SpecError, match=r"PPO\.critic_net has no effect with shared=True"):
        trial(shared=True, critic_net=MLP())


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(
        SpecError, match=r"does not divide.*is less than one batch|is less than one batch.*does not divide"
    ):
        trial(frames=10, minibatch=100)


@pytest.mark.parametrize(
    ("env", "actions"),
    [
        (Classic("CartPole-v1"), "discrete"),
        (Classic("Pendulum-v1"), "continuous"),
        (Box2D("LunarLander-v3"), "discrete"),
        (Box2D("BipedalWalker-v3"), "continuous"),
        (MuJoCo("Hopper-v5"), "continuous"),
        (Atari("Pong"), "discrete"),
        (Playground("CheetahRun"), "continuous"),
        (Gym("Mine-v0"), None),
    ],
)
def test_the_actions_of_an_environment_as_far_as_the_spec_can_know(env: Environment, actions: str | None) -> None:
    assert env.actions == actions


@pytest.mark.parametrize("name", ["a b", "", "/x", "x/", "x//y", "x\n", "a:b"])
def test_a_name_that_cannot_be_a_path_is_refused(name: str) -> None:
    base = trial()
    with pytest.raises(SpecError, match="should be letters, digits and"):
        Experiment(name=name, agent=base.agent, env=base.env, budget=base.budget)
