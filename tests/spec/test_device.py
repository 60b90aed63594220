"""Which sessions `device="auto"` sends to a GPU, and that a device is no part of the identity."""

from __future__ import annotations

import pytest

from rldsl import A2C, DQN, MLP, PPO, SAC, Atari, Classic, Conv, MuJoCo, Playground, Random, Recurrent
from rldsl.spec.agent import Agent
from rldsl.spec.budget import Budget
from rldsl.spec.compute import Compute
from rldsl.spec.device import gpu_number, uses_gpu, worth_gpu
from rldsl.spec.environment import Environment
from rldsl.spec.experiment import Trial

CARTPOLE = Classic("CartPole-v1", num_envs=8)


def trial(agent: Agent, env: Environment = CARTPOLE, device: str = "auto") -> Trial:
    return Trial(agent=agent, env=env, budget=Budget(1_000_000), compute=Compute(device=device))


@pytest.mark.parametrize(
    ("agent", "env", "expected"),
    [
        (PPO(), CARTPOLE, False),
        (PPO(net=Recurrent((64,), size=128)), CARTPOLE, False),
        (SAC(), MuJoCo("HalfCheetah-v5"), False),
        (Random(), Classic("CartPole-v1", num_envs=4096), False),
        (PPO(rollout=128, minibatch=256, net=Conv()), Atari("Pong", num_envs=8), True),
        (DQN(net=Conv()), Atari("Pong"), True),
        (PPO(rollout=32, minibatch=4096, net=MLP((256, 256))), Classic("CartPole-v1", num_envs=512), True),
        (PPO(rollout=32, minibatch=4096, net=MLP((64, 64))), Classic("CartPole-v1", num_envs=512), False),
        (A2C(rollout=16, net=MLP((256,))), Classic("CartPole-v1", num_envs=1024), True),
        (SAC(batch=8192), MuJoCo("HalfCheetah-v5"), True),
        (PPO(rollout=16, minibatch=256), Playground("CartpoleBalance", num_envs=64), False),
        (PPO(rollout=16, minibatch=4096), Playground("CartpoleBalance", num_envs=2048), True),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_convolutions_simulators_on_gpus_and_large_batches_are_worth_a_gpu(
    agent: Agent, env: Environment, expected: bool
) -> None:
    made = trial(agent, env)
    assert worth_gpu(made) is expected
    assert uses_gpu(made, available=True) is expected
    assert uses_gpu(made, available=False) is False


def test_a_device_that_is_asked_for_is_used_whatever_it_is_worth() -> None:
    for device in ("cuda", "cuda:1"):
        assert uses_gpu(trial(PPO(), device=device), available=False)
    conv = trial(DQN(net=Conv()), Atari("Pong"), "cpu")
    assert not uses_gpu(conv, available=True)


def test_a_device_is_no_part_of_the_identity() -> None:
    assert Compute().device == "auto"
    assert len({trial(PPO(), device=device).id for device in ("auto", "cpu", "cuda", "cuda:3")}) == 1


def test_a_gpu_has_a_number_if_it_is_given() -> None:
    assert [gpu_number(device) for device in ("auto", "cpu", "cuda", "cuda:0", "cuda:12")] == [None, None, None, 0, 12]
