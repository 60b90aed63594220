"""PPO with the default settings of rldsl and of Stable-Baselines3 on LunarLander: `python -m benchmarks.defaults`.

Both train one environment for the same frames and seeds. The score of a seed is the mean return of its last 100
training episodes. The result is written to `results/defaults.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.compare import ROOT, environment

ENV = "LunarLander-v3"
OURS = """
from rldsl import PPO, Box2D, experiment, main
main(experiment("defaults").env(Box2D("{env}", num_envs=1)).agent(PPO()).frames({frames}).seeds({seeds}))
"""
PEER = """
import json, statistics, sys
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
torch.set_num_threads(1)
model = PPO("MlpPolicy", make_vec_env("{env}", seed={seed}), seed={seed}, device="cpu").learn({frames})
print(json.dumps(statistics.fmean(info["r"] for info in model.ep_info_buffer)))
"""


def ours(frames: int, seeds: int) -> list[float]:
    """The scores of rldsl's PPO."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "defaults.py")
        file.write_text(OURS.format(env=ENV, frames=frames, seeds=seeds))
        train = [sys.executable, str(file)]
        subprocess.run(train, cwd=scratch, env=environment(), check=True, stdout=sys.stderr)
        status = subprocess.run([*train, "status", "--json"], cwd=scratch, check=True, capture_output=True, text=True)
    return [session["episode_return"] for session in json.loads(status.stdout)]


def peer(python: Path, frames: int, seed: int) -> float:
    """The score of one seed of SB3's PPO."""
    code = PEER.format(env=ENV, frames=frames, seed=seed)
    run = subprocess.run([str(python), "-c", code], env=environment(), check=True, stdout=subprocess.PIPE, text=True)
    return float(run.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.defaults", description=__doc__)
    parser.add_argument("--frames", type=int, default=150_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peers-python", type=Path, default=ROOT / ".venv-peers" / "bin" / "python")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "defaults.json")
    args = parser.parse_args()
    scores = {"rldsl": ours(args.frames, args.seeds)}
    with ThreadPoolExecutor(2) as pool:
        scores["sb3"] = list(pool.map(lambda seed: peer(args.peers_python, args.frames, seed), range(args.seeds)))
    result: dict[str, Any] = {"env": ENV, "frames": args.frames, "metric": "mean return of the last 100 episodes"}
    args.out.write_text(json.dumps({**result, "scores": scores}, indent=1) + "\n")
    print(json.dumps(scores))


if __name__ == "__main__":
    main()
