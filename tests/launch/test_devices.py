"""What a launcher means for the device of sessions: who gets a GPU, and what `plan` says before it is paid for."""

from __future__ import annotations

from typing import Any

import pytest

from rldsl import DQN, PPO, Atari, Classic, Conv, Dstack, Local, Slurm, SpecError
from rldsl.launch.devices import device_problem, device_warnings, has_gpus, on_gpu, refuse_devices
from rldsl.spec.budget import Budget
from rldsl.spec.compute import Compute
from rldsl.spec.experiment import Trial
from rldsl.spec.launcher import Launcher
from tests.project import Project


def small(device: str = "auto") -> Trial:
    env = Classic("CartPole-v1", num_envs=8)
    return Trial(agent=PPO(), env=env, budget=Budget(1_000_000), compute=Compute(device=device))


def conv(device: str = "auto") -> Trial:
    agent = DQN(net=Conv())
    return Trial(agent=agent, env=Atari("Pong"), budget=Budget(1_000_000), compute=Compute(device=device))


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")


@pytest.fixture
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        (Slurm(), False),
        (Slurm(gpus=1), True),
        (Slurm(gpus=0, gpu="a100"), False),
        (Slurm(gpu="a100"), True),
        (Dstack(), False),
        (Dstack(gpu=("L4",)), True),
        (Dstack(gpu_memory_gb=20), True),
        (Dstack(gpus=0, gpu=("L4",)), False),
    ],
    ids=repr,
)
def test_auto_takes_the_gpu_of_a_launcher_that_has_one(launcher: Launcher, expected: bool) -> None:
    assert has_gpus(launcher) is expected
    assert on_gpu(conv(), launcher) is expected
    assert not on_gpu(small(), launcher)
    assert on_gpu(small("cuda"), launcher) and not on_gpu(conv("cpu"), launcher)


@pytest.mark.usefixtures("two_gpus")
def test_auto_takes_a_gpu_of_this_machine() -> None:
    assert on_gpu(conv(), Local()) and not on_gpu(small(), Local())
    assert device_problem(conv("cuda:1"), Local()) is None
    assert device_problem(conv("cuda:2"), Local()) == (
        "compute.device is cuda:2, but this machine has 2 GPUs: the last one is cuda:1"
    )


@pytest.mark.usefixtures("no_gpus")
def test_without_a_gpu_only_cuda_is_a_problem() -> None:
    assert not on_gpu(conv(), Local()) and device_problem(conv(), Local()) is None
    with pytest.raises(SpecError, match=r"compute\.device is cuda, but this machine has no GPU: use auto or cpu"):
        refuse_devices([small(), small("cuda")], Local())


@pytest.mark.parametrize(
    ("trial", "launcher", "sentence"),
    [
        (small("cuda:1"), Slurm(gpus=1), "but slurm chooses the GPU of a job: write cuda"),
        (small("cuda:1"), Dstack(), "but dstack chooses the GPU of a job: write cuda"),
        (small("cuda"), Slurm(gpus=0), "but Slurm.gpus is 0"),
        (small(), Slurm(gpus=1), "leave the GPUs idle: use compute.device=cuda, or no GPUs"),
        (small("cpu"), Dstack(gpu=("L4",)), "its sessions train on the CPU (compute.device is cpu)"),
    ],
)
def test_what_would_be_paid_for_and_not_used_is_told(trial: Trial, launcher: Launcher, sentence: str) -> None:
    (warning,) = device_warnings([trial, trial], launcher)
    assert sentence in warning


@pytest.mark.parametrize(
    ("trial", "launcher"),
    [
        (conv(), Slurm(gpus=1)),
        (small("cuda"), Slurm()),
        (small("cuda:0"), Slurm()),
        (small(), Slurm(gpu="a100")),
        (small(), Dstack()),
        (conv(), Slurm(gpus=0)),
    ],
)
def test_what_is_right_is_not_talked_about(trial: Trial, launcher: Launcher) -> None:
    assert device_warnings([trial], launcher) == []


def test_the_plan_of_a_gpu_launcher_says_that_its_gpu_would_be_idle(project: Project) -> None:
    project.write("""
        from rldsl import PPO, Classic, Slurm, experiment, main

        ppo = experiment("x").env(Classic("CartPole-v1")).agent(PPO()).frames(1e5).on(Slurm(gpus=1))

        if __name__ == "__main__":
            main(ppo)
    """)
    said: Any = project.python("exp.py", "plan")
    assert said.returncode == 0
    assert "warning: its sessions train on the CPU (compute.device=auto leaves small networks there)" in said.stdout
    assert "warning" not in project.python("exp.py", "plan", "--set", "compute.device=cuda").stdout
