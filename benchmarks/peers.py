"""Train a peer library at one work of the benchmark and print as one line of JSON how much it trained and when.

Runs inside the peers' environment (`peers-requirements.txt`). A peer is imported only after the thread counts are set,
for numpy, torch and XLA read them once. Exit code 3 says that the peer lacks the work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

LACKS_WORK = 3


@dataclass(frozen=True)
class Work:
    """What to train. Settings that do not change the speed are left at the peer's defaults."""

    algorithm: str
    env: str
    envs: int
    hidden: list[int]
    settings: dict[str, Any]
    lacked_by: dict[str, str] = field(default_factory=dict)

    @property
    def warm_up_frames(self) -> int:
        """Frames before the clock starts: two rollouts, or ten vector steps that learn from the replay buffer."""
        if "n_steps" in self.settings:
            return 2 * self.settings["n_steps"] * self.envs
        return self.settings["learning_starts"] + 10 * self.envs


REPLAY = {"learning_starts": 500, "train_freq": 1, "gradient_steps": 4}

WORKS = {
    "ppo-cartpole": Work(
        "PPO",
        "CartPole-v1",
        envs=4,
        hidden=[64, 64],
        settings={
            "n_steps": 256,
            "batch_size": 128,
            "n_epochs": 15,
            "gamma": 0.9769,
            "gae_lambda": 0.9112,
            "clip_range": 0.1312,
            "ent_coef": 0.0074,
            "vf_coef": 0.6049,
            "learning_rate": 5.9e-4,
            "max_grad_norm": 0.5,
        },
    ),
    "a2c-cartpole": Work(
        "A2C",
        "CartPole-v1",
        envs=4,
        hidden=[64, 64],
        settings={"n_steps": 32, "use_rms_prop": False, "learning_rate": 1e-3, "gae_lambda": 0.95, "ent_coef": 0.01},
        lacked_by={"sbx": "SBX has no A2C."},
    ),
    "ppo-hopper": Work(
        "PPO",
        "Hopper-v5",
        envs=16,
        hidden=[256, 256],
        settings={"n_steps": 256, "batch_size": 64, "n_epochs": 10},
    ),
    "dqn-cartpole": Work(
        "DQN",
        "CartPole-v1",
        envs=4,
        hidden=[256, 128],  # SBX's DQN gives all hidden layers the width of the first: there it is [256, 256]
        settings={**REPLAY, "batch_size": 64, "buffer_size": 50_000},
    ),
    "sac-pendulum": Work(
        "SAC",
        "Pendulum-v1",
        envs=4,
        hidden=[256, 256],
        settings={**REPLAY, "batch_size": 256, "buffer_size": 100_000},
    ),
    "sac-halfcheetah": Work(
        "SAC",
        "HalfCheetah-v5",
        envs=16,
        hidden=[256, 256],
        settings={**REPLAY, "batch_size": 256, "buffer_size": 1_000_000},
    ),
}


def hold_threads(threads: int) -> None:
    """Bound every thread pool of numpy, torch and JAX. Call it before any of them is imported."""
    for pool in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC"):
        os.environ[pool] = str(threads)
    parallel = str(threads > 1).lower()
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={parallel} intra_op_parallelism_threads={threads}"
    os.environ["JAX_PLATFORMS"] = "cpu"


def build(peer: str, work: Work, seed: int, threads: int) -> BaseAlgorithm:
    """The peer's model on a DummyVecEnv. `net_arch` as a list means separate policy and value nets to both peers."""
    import torch

    torch.set_num_threads(threads)
    from stable_baselines3.common.env_util import make_vec_env

    if peer == "sb3":
        import stable_baselines3 as library
    else:
        import sbx as library
    return getattr(library, work.algorithm)(
        "MlpPolicy",
        make_vec_env(work.env, n_envs=work.envs, seed=seed),
        policy_kwargs={"net_arch": work.hidden},
        seed=seed,
        device="cpu",
        verbose=0,
        **work.settings,
    )


def train(model: BaseAlgorithm, frames: int) -> int:
    """Train on, silently, for at least `frames` frames, and say how many it were: a rollout is never cut short."""
    before = model.num_timesteps
    model.learn(frames, log_interval=None, reset_num_timesteps=False)
    return model.num_timesteps - before


def warm_up(model: BaseAlgorithm, frames: int) -> None:
    """Train before the clock starts, so that it finds everything compiled."""
    train(model, frames)
    if hasattr(model, "vf"):  # SBX's PPO values a single observation, compiled apart, once a time limit ends an episode
        model.vf.apply(model.policy.vf_state.params, model.policy.prepare_obs(model._last_obs[0])[0]).flatten()


def last_return(model: BaseAlgorithm) -> float | None:
    """The mean return of the last hundred training episodes, or None before the first one ends."""
    returns = [episode["r"] for episode in model.ep_info_buffer or ()]
    return sum(returns) / len(returns) if returns else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the training speed of a peer library.")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--peer", choices=("sb3", "sbx"), required=True)
    parser.add_argument("--frames", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cold", action="store_true", help="no warm-up: the clock sees compilation too")
    args = parser.parse_args()
    work = WORKS[args.work]
    if lack := work.lacked_by.get(args.peer):
        print(lack, file=sys.stderr)
        return LACKS_WORK

    hold_threads(args.threads)
    model = build(args.peer, work, args.seed, args.threads)
    if not args.cold:
        warm_up(model, work.warm_up_frames)
    start = time.perf_counter()
    frames = train(model, args.frames)
    line = {"peer": args.peer, "work": args.work, "frames": frames, "start": start, "end": time.perf_counter()}
    print(json.dumps({**line, "return": last_return(model)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
