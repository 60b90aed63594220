"""Devices of sessions: which of them train on a GPU if there is one. `device="auto"` follows this rule.

The rule is a rule of thumb, not a measurement of the user's machine: a small network with a small batch takes longer to
reach a GPU than to compute on a CPU.
"""

from __future__ import annotations

import re

from rldsl.spec.experiment import Trial
from rldsl.spec.net import Conv, Net, Recurrent

CPU, CUDA, AUTO = "cpu", "cuda", "auto"
GPU_WORK = 1_000_000
"""Samples of a gradient step times units of the widest layer from which on a GPU is worthwhile: 4,096 x 256."""
GPU_ENVS = 256
"""Environments from which on a simulator that can run on a GPU should."""


def uses_gpu(trial: Trial, available: bool) -> bool:
    """Whether sessions train on a GPU where one is `available`. With `device="cuda"` they do, or fail."""
    device = trial.compute.device
    return available and worth_gpu(trial) if device == AUTO else device != CPU


def worth_gpu(trial: Trial) -> bool:
    """Whether sessions are expected to train faster on a GPU.

    Convolutional networks, MuJoCo Playground with many environments, and large batches with wide layers.
    """
    if any(isinstance(net, Conv) for net in nets_of(trial)):
        return True
    if trial.env.kind == "playground" and trial.env.num_envs >= GPU_ENVS:
        return True
    return _samples(trial) * widest_layer(trial) >= GPU_WORK


def gpu_number(device: str) -> int | None:
    """The number in `cuda:1`; None without one."""
    found = re.fullmatch(r"cuda:(\d+)", device)
    return int(found[1]) if found else None


def nets_of(trial: Trial) -> list[Net]:
    """The networks of an agent."""
    nets = [getattr(trial.agent, name, None) for name in ("net", "critic_net")]
    return [net for net in nets if isinstance(net, Net)]


def widest_layer(trial: Trial) -> int:
    """Units of the widest fully connected or recurrent layer; 0 without a network."""
    return max((size for net in nets_of(trial) for size in _layers(net)), default=0)


def _layers(net: Net) -> tuple[int, ...]:
    return (*getattr(net, "hidden", ()), *([net.size] if isinstance(net, Recurrent) else []))


def _samples(trial: Trial) -> int:
    """Samples of one gradient step."""
    agent = trial.agent
    for name in ("minibatch", "batch"):
        if isinstance(size := getattr(agent, name, None), int):
            return size
    return int(getattr(agent, "rollout", 0)) * trial.env.num_envs
