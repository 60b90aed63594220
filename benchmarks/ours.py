"""The workloads of the speed benchmark in rldsl, trained like any session, with logging and checkpoints.

`python -m benchmarks.ours WORKLOAD --frames N --seed S` prints one line of JSON. The clock starts after the first
iterations, when everything is compiled. `four-seeds` and `search` are timed by the caller, from start to end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rldsl import A2C, DQN, MLP, PPO, SAC, Adam, Classic, Environment, MuJoCo, experiment
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.experiment import Trial
from rldsl.spec.off_policy import OffPolicy
from rldsl.spec.session import Session
from rldsl.store.metrics import last_row
from rldsl.store.provenance import Provenance
from rldsl.store.session_dir import SessionDir
from rldsl.train.pack import Pack, open_directories


def _compiled(env: Environment) -> ExperimentBuilder:
    return experiment("bench").env(env).compute(compile="on")


CARTPOLE = _compiled(Classic("CartPole-v1", num_envs=4))
PPO_CARTPOLE: dict[str, Any] = {
    "gamma": 0.9769,
    "lam": 0.9112,
    "clip": 0.1312,
    "entropy": 0.0074,
    "value_coef": 0.6049,
    "rollout": 256,
    "minibatch": 128,
    "epochs": 15,
    "lr": 5.9e-4,
}
REPLAY: dict[str, Any] = {"learning_starts": 500, "updates_per_frame": 1.0}
"""Four updates after each step of four environments."""
WORKS: dict[str, ExperimentBuilder] = {
    "ppo-cartpole": CARTPOLE.agent(PPO(**PPO_CARTPOLE)),
    "a2c-cartpole": CARTPOLE.agent(A2C(lr=1e-3, rollout=32, optimizer=Adam())),
    "ppo-hopper": _compiled(MuJoCo("Hopper-v5", num_envs=16)).agent(
        PPO(rollout=256, minibatch=64, epochs=10, net=MLP((256, 256)))
    ),
    "dqn-cartpole": CARTPOLE.agent(DQN(**REPLAY, batch=64, buffer=50_000, net=MLP((256, 128), activation="relu"))),
    "sac-pendulum": _compiled(Classic("Pendulum-v1", num_envs=4)).agent(SAC(**REPLAY)),
    "sac-halfcheetah": _compiled(MuJoCo("HalfCheetah-v5", num_envs=16)).agent(
        SAC(**REPLAY | {"updates_per_frame": 0.25}, buffer=1_000_000)
    ),
}
FOUR_SEEDS = """
from rldsl import PPO, Classic, experiment, main

cartpole = experiment("bench").env(Classic("CartPole-v1", num_envs=4)).compute(compile="on")

if __name__ == "__main__":
    main(cartpole.agent(PPO(**{settings})).frames({frames}).seeds(4))
"""


SEARCH = """
from rldsl import PPO, Classic, Local, experiment, log_uniform, main, uniform

cartpole = experiment("bench").env(Classic("CartPole-v1", num_envs=4)).compute(compile="on").frames({frames})
ppo = cartpole.agent(PPO(**{settings})).on(Local(parallel=2, members={members}))
axes = dict(gamma=uniform(0.95, 0.999), lam=uniform(0.9, 0.98), lr=log_uniform(1e-4, 2e-3))

if __name__ == "__main__":
    main(ppo.search(**axes).random(trials={trials}))
"""
TRIALS = 16


def one_session(work: str, frames: int, seed: int) -> dict[str, object]:
    """Trains a session in a directory of its own and times it after the warm-up."""
    with tempfile.TemporaryDirectory() as runs:
        warm_up = warm_up_frames(WORKS[work].frames(frames).build().base())
        trial = WORKS[work].frames(frames + 2 * warm_up).build().base()
        session = Session(experiment="bench", trial=trial, seed=seed)
        directories = open_directories(Path(runs), [session])
        pack = Pack([session], directories, Provenance({}, ""))
        clock = Clock(pack, warm_up)
        pack.run(clock.tick)
        return clock.measurement() | {"return": _final_return(directories[0])}


def warm_up_frames(trial: Trial) -> int:
    """Frames after which everything is compiled: three rollouts, or learning_starts and some gradient steps."""
    agent, envs = trial.agent, trial.env.num_envs
    return agent.learning_starts + 64 * envs if isinstance(agent, OffPolicy) else 3 * agent.rollout * envs


class Clock:
    """Called after each iteration in place of a stop request; notes the time after the warm-up and never stops."""

    def __init__(self, pack: Pack, warm_up: int) -> None:
        self.pack, self.warm_up, self.first = pack, warm_up, 0

    def tick(self) -> None:
        if not self.first and self.pack.frame >= self.warm_up:
            self.start, self.first = time.perf_counter(), self.pack.frame

    def measurement(self) -> dict[str, object]:
        """Frames since the warm-up, with start and end time."""
        return {"frames": self.pack.frame - self.first, "start": self.start, "end": time.perf_counter()}


def _final_return(directory: SessionDir) -> object:
    return (last_row(directory.metrics) or {}).get("episode_return")


def four_seeds(frames: int) -> dict[str, object]:
    """A trial of four seeds through the command line, packed onto both cores."""
    return _command(FOUR_SEEDS.format(frames=frames, settings=PPO_CARTPOLE), "train", 4 * frames)


def search(frames: int, members: int | None) -> dict[str, object]:
    """A random search through the command line; `members` limits the size of packs."""
    settings = {name: value for name, value in PPO_CARTPOLE.items() if name not in ("gamma", "lam", "lr")}
    script = SEARCH.format(frames=frames, settings=settings, members=members, trials=TRIALS)
    return _command(script, "search", TRIALS * frames)


def _command(script: str, command: str, frames: int) -> dict[str, object]:
    """Runs a command of an experiment file; the return is the mean over all sessions."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.py")
        file.write_text(script)
        whole = [sys.executable, str(file), command, "--runs", f"{folder}/runs"]
        subprocess.run(whole, check=True, stdout=subprocess.DEVNULL)
        returns = [_final_return(SessionDir(path.parent)) for path in Path(folder).glob("runs/*/*/*/metrics.csv")]
    return {"frames": frames, "return": sum(map(float, returns)) / len(returns)}


def main() -> None:
    """Prints the measurement of one workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=[*WORKS, "four-seeds", "search"])
    parser.add_argument("--frames", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--separate", action="store_true", help="the trials of a search in separate processes")
    options = parser.parse_args()
    if options.work == "four-seeds":
        measured = four_seeds(options.frames)
    elif options.work == "search":
        measured = search(options.frames, 1 if options.separate else None)
    else:
        measured = one_session(options.work, options.frames, options.seed)
    print(json.dumps({"peer": "rldsl", "work": options.work, **measured}))


if __name__ == "__main__":
    main()
