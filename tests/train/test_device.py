"""The device of a session: resolved where it trains, journalled, and one sentence if it is not there.

There is no GPU here: a stand-in says that torch has CUDA, and only agents that compute nothing train on it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from rldsl import DQN, PPO, Atari, Classic, Conv, Playground, SpecError
from rldsl.spec.agent import Agent
from rldsl.spec.budget import Budget
from rldsl.spec.compute import Compute
from rldsl.spec.environment import Environment
from rldsl.spec.experiment import Trial
from rldsl.train import device as module
from rldsl.train.device import prepare_process, resolve_device
from tests.project import Project, events

EXPERIMENT = """
    import os
    import sys
    from typing import ClassVar, Literal

    from rldsl import PPO, Classic, MLP, Random, experiment, main

    if os.environ.get("STAND_IN") and "rldsl.train.pack" in sys.modules:
        import torch
        torch.cuda.is_available = lambda: bool(os.environ["CUDA_VISIBLE_DEVICES"])
        torch.cuda.device_count = lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))


    class Seeing(Random, frozen=True):
        kind: Literal["seeing"] = "seeing"
        implementation: ClassVar[str] = "seeing:SeeingAgent"


    class Watched(Classic, frozen=True):
        kind: Literal["watched"] = "watched"
        implementation: ClassVar[str] = "seeing:make"


    base = experiment("x").env(Watched("CartPole-v1", num_envs=512)).frames(16384).log_every(16384)
    seeing = base.agent(Seeing())
    ppo = base.agent(PPO(rollout=32, minibatch=8192, epochs=1, net=MLP((128, 128))))

    if __name__ == "__main__":
        main(seeing, ppo)
"""
SEEING = """
    import os

    from rldsl.agents.random import RandomAgent
    from rldsl.envs.make import classic


    class SeeingAgent(RandomAgent):
        def __init__(self, context):
            super().__init__(context)
            seen = os.environ.get("CUDA_VISIBLE_DEVICES")
            print(f"device {context.device}, sees {seen!r}", flush=True)


    def make(spec, rows, threads):
        print("an environment is made", flush=True)
        return classic(spec, rows, threads)
"""


@pytest.fixture
def lab(project: Project) -> Project:
    project.write(EXPERIMENT)
    project.write(SEEING, "seeing.py")
    return project


def log(project: Project) -> str:
    return (project.session / "log.txt").read_text()


def started(project: Project) -> dict[str, object]:
    return next(event for event in events(project.session) if event["event"] == "started")


def test_a_session_on_the_cpu_sees_no_gpu_and_says_where_it_ran(lab: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert lab.python("exp.py", "--only", "seeing").returncode == 0
    assert "device cpu, sees ''" in log(lab)
    assert started(lab)["device"] == "cpu"
    assert json.loads((lab.session / "provenance.json").read_text())["device"] == "cpu"
    (status,) = json.loads(lab.python("exp.py", "status", "--only", "seeing", "--json").stdout)
    assert status["device"] == "cpu"
    assert " device " not in lab.python("exp.py", "status", "--only", "seeing").stdout, "only GPUs are worth a column"


def test_a_session_on_a_gpu_sees_one_and_calls_it_cuda(lab: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    monkeypatch.setenv("STAND_IN", "1")
    words = ("--only", "seeing", "--set", "compute.device=cuda:1")
    done = lab.python("exp.py", *words)
    assert done.returncode == 0, done.stdout + log(lab)
    assert "device cuda, sees '7'" in log(lab), "the second of those that are visible"
    assert started(lab)["device"] == "cuda"
    shown = lab.python("exp.py", "status", *words).stdout.splitlines()
    assert "device" in shown[0].split() and "cuda" in shown[1].split()


def test_a_gpu_that_this_machine_does_not_have_is_refused_before_anything_starts(lab: Project) -> None:
    words = ("--only", "seeing", "--set", "compute.device=cuda")
    sentence = "compute.device is cuda, but this machine has no GPU: use auto or cpu"
    planned = lab.python("exp.py", "plan", *words)
    assert planned.returncode == 0 and f"warning: {sentence}" in planned.stdout
    for detach in ((), ("--detach",)):
        done = lab.python("exp.py", *words, *detach)
        assert done.returncode != 0 and done.stderr == f"error: {sentence}\n"
    assert not lab.sessions


def test_a_job_without_its_gpu_fails_with_a_sentence_before_an_environment_is_made(
    lab: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    done = lab.python("exp.py", "--only", "seeing", "--set", "compute.device=cuda")
    assert done.returncode != 0
    sentence = "compute.device is cuda, but the installed torch has no CUDA: install one that has (https://pytorch.org)"
    assert log(lab) == f"rldsl: {sentence}\n", "no environment, no traceback"
    failed = events(lab.session)[-1]
    assert (failed["event"], failed["reason"]) == ("failed", sentence)


def test_auto_says_so_if_it_leaves_a_gpu_idle(lab: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert lab.python("exp.py", "--only", "ppo").returncode == 0
    assert "rldsl: there is a GPU, but the installed torch has no CUDA" in log(lab)
    assert "; training on the CPU" in log(lab)
    assert started(lab)["device"] == "cpu"


# --- Resolving --------------------------------------------------------------------

PONG = Atari("Pong")
POLE = Playground("CartpoleBalance", num_envs=2048)


def trial(device: str, agent: Agent | None = None, env: Environment = PONG) -> Trial:
    return Trial(agent=agent or DQN(net=Conv()), env=env, budget=Budget(1_000_000), compute=Compute(device=device))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A torch that has CUDA and two GPUs."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("JAX_PLATFORMS", "unset")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(module, "JAX_PLUGINS", ("torch",))
    return monkeypatch


def test_auto_is_cuda_where_it_is_worthwhile(gpus: pytest.MonkeyPatch) -> None:
    assert resolve_device(trial("auto")) == "cuda"
    assert resolve_device(trial("auto", PPO(), Classic("CartPole-v1"))) == "cpu"
    assert resolve_device(trial("cpu")) == "cpu"
    assert [resolve_device(trial(device)) for device in ("cuda", "cuda:0", "cuda:1")] == ["cuda", "cuda:0", "cuda:1"]
    assert os.environ["JAX_PLATFORMS"] == "unset", "nobody needs JAX"


def test_a_number_beyond_the_last_gpu_is_refused_unless_a_launcher_chose_the_gpu(gpus: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=r"cuda:2, but there are only 2 GPUs: the last one is cuda:1"):
        resolve_device(trial("cuda:2"))
    gpus.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(SpecError, match="there is only 1 GPU: the last one is cuda:0"):
        resolve_device(trial("cuda:1"))
    gpus.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert resolve_device(trial("cuda:1")) == "cuda"


def test_jax_and_torch_use_the_same_device(gpus: pytest.MonkeyPatch) -> None:
    large = PPO(rollout=16, minibatch=4096)
    assert resolve_device(trial("auto", large, POLE)) == "cuda" and os.environ["JAX_PLATFORMS"] == "cuda,cpu"
    assert resolve_device(trial("cpu", large, POLE)) == "cpu" and os.environ["JAX_PLATFORMS"] == "cpu"
    gpus.setattr(module, "JAX_PLUGINS", ("no_such_plugin",))
    assert resolve_device(trial("auto", large, POLE)) == "cpu" and os.environ["JAX_PLATFORMS"] == "cpu"
    with pytest.raises(SpecError, match=r"JAX, which runs this environment, has no CUDA: pip install 'jax\[cuda12\]'"):
        resolve_device(trial("cuda", large, POLE))


def test_without_a_gpu_it_says_what_is_missing(gpus: pytest.MonkeyPatch) -> None:
    gpus.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SpecError, match=r"torch finds no GPU \(this machine\): ask the launcher for one with gpus=1"):
        resolve_device(trial("cuda"))
    gpus.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(SpecError, match=r"torch finds no GPU \(CUDA_VISIBLE_DEVICES=''\)"):
        resolve_device(trial("cuda"))
    assert resolve_device(trial("auto")) == "cpu"


def test_kernels_for_gpus_are_cached_in_the_directory_of_the_user(tmp_path: Path, gpus: pytest.MonkeyPatch) -> None:
    for name in module.CACHES:
        gpus.delenv(name, raising=False)
    gpus.setenv("TRITON_CACHE_DIR", "mine")
    gpus.setenv("XDG_CACHE_HOME", str(tmp_path))
    prepare_process(trial("auto"))
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "rldsl" / "inductor")
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "rldsl" / "jax")
    assert os.environ["TRITON_CACHE_DIR"] == "mine"
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    prepare_process(trial("cpu"))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
