"""A project on the cluster, and what people do with it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from tests.project import Project, events, until
from tests.slurm.cluster import Cluster

AGENT = """
import os
import sys
import time

import numpy as np

from rldsl.agents.random import RandomAgent


class SlowAgent(RandomAgent):
    def __init__(self, setting):
        super().__init__(setting)
        spec = setting.specs[0]
        self.nap = spec.nap * setting.seeds[0] if spec.by_seed else spec.nap
        self.wrong = spec.wrong or setting.seeds[0] == spec.wrong_seed
        self.hangs, self.steps = spec.hangs, 0
        self.eaten = np.ones(spec.eats * 2**17)
        if spec.says:
            print(f"{spec.says} is {len(os.environ.get(spec.says, ''))} long: "
                  f"{sum(os.environ.get(spec.says, '').encode())}", flush=True)
        print("gpus", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
        if "torch" in sys.modules:
            print("threads", sys.modules["torch"].get_num_threads(), flush=True)

    def state(self, member):
        first_life = "SLURM_RESTART_COUNT" not in os.environ
        if self.hangs == "always" or (self.hangs == "once" and first_life and self.steps > 250):
            print("hangs", flush=True)
            time.sleep(90)
        return super().state(member)

    def policy_state(self, member):
        return super().state(member)

    def iterate(self, world):
        self.steps += 1
        if self.wrong:
            raise ValueError("kaboom")
        time.sleep(self.nap)
        super().iterate(world)
"""
EXPERIMENT = """
import os
import sys
from typing import ClassVar, Literal

from rldsl import PPO, Classic, Random, experiment, main


class Slow(Random, frozen=True):
    kind: Literal["slow"] = "slow"
    implementation: ClassVar[str] = "slow_agent:SlowAgent"
    nap: float = 0.0
    eats: int = 0
    says: str = ""
    wrong: bool = False
    wrong_seed: int = -1
    by_seed: bool = False
    hangs: str = ""


if "rldsl.train.pack" in sys.modules:  # a stand-in for GPUs: agents that compute nothing train on them
    import torch

    torch.cuda.is_available = lambda: bool(os.environ.get("CUDA_VISIBLE_DEVICES"))
    torch.cuda.device_count = lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))

cart = experiment("cart").env(Classic("CartPole-v1")).seeds(2).compute(compile="off").log_every(100)
slow = cart.agent(Slow()).frames(1000)
ppo = cart.agent(PPO(rollout=128, epochs=2)).frames(12_800).log_every(640)

if __name__ == "__main__":
    main(slow, ppo)
"""


class Lab:
    """Jobs of one core; the launcher is `launchers/lab.py`."""

    def __init__(self, cluster: Cluster, project: Project) -> None:
        self.cluster, self.project, self.runs = cluster, project, project.runs
        project.write(EXPERIMENT)
        project.write(AGENT, "slow_agent.py")
        self.launcher()

    def launcher(self, **fields: Any) -> None:
        given = {"memory_gb": 1.0, "hours": 1.0, "members": 1, **fields}
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        self.project.write(f"from rldsl import Slurm\n\nlauncher = Slurm({words})\n", "launchers/lab.py")

    def train(self, *words: object, fails: bool = False) -> str:
        """The command and what it says; it is expected to succeed unless it `fails`."""
        return self.command("train", "--on", "lab", *words, fails=fails)

    def command(self, *words: object, fails: bool = False) -> str:
        done = self.project.python("exp.py", *words)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def status(self, *words: object) -> dict[str, dict[str, Any]]:
        """How sessions stand, by seed."""
        done = self.project.python("exp.py", "status", "--json", *words)
        return {one["seed"]: one for one in json.loads(done.stdout)}

    @property
    def records(self) -> list[dict[str, Any]]:
        path = self.runs / ".jobs" / "tickets.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if "job_id" in line]

    @property
    def jobs(self) -> list[str]:
        return [record["job_id"] for record in self.records]

    def seed(self, number: int, runs: Path | None = None) -> Path:
        (path,) = (runs or self.runs).glob(f"*/*/seed-{number}")
        return path

    def events(self, seed: int = 0) -> list[str]:
        return [one["event"] for one in events(self.seed(seed))]

    def until_begun(self, seed: int = 0, points: int = 3) -> Path:
        """Waits until a session has so many log points."""
        found = until(lambda: next(iter(self.runs.glob(f"*/*/seed-{seed}")), None))
        until(lambda: _lines(found / "metrics.csv") > points, 180)
        return found

    def until_event(self, event: str, seed: int = 0, times: int = 1, seconds: float = 180) -> None:
        until(lambda: self.events(seed).count(event) >= times, seconds)

    def until_gone(self, *jobs: str) -> None:
        """Waits until the queue has none of these any more, and the accounts know how they ended."""
        until(lambda: not set(jobs or self.jobs) & set(self.cluster.queue()), 180)

    def pid(self, seed: int = 0) -> int:
        return self.pid_of(self.seed(seed))

    def pid_of(self, session: Path) -> int:
        return int(json.loads((session / "alive.json").read_text())["pid"])

    def cancel_all(self) -> None:
        if live := set(self.jobs) & set(self.cluster.queue()):
            subprocess.run(["scancel", "--signal=KILL", *live], check=False)
            subprocess.run(["scancel", *live], check=False)

    def written(self) -> bytes:
        """Everything that is in the project, file by file."""
        files = [path for path in self.project.root.rglob("*") if path.is_file()]
        return b"\n".join(os.fsencode(path) + b"\n" + path.read_bytes() for path in files)


def weights(session: Path) -> dict[str, dict[str, bytes]]:
    """What each checkpoint holds, apart from the metrics, which have times."""
    return {
        path.parent.name: {name: array.tobytes() for name, array in load_file(path).items() if "metrics" not in name}
        for path in session.glob("checkpoints/*/*.safetensors")
    }


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
