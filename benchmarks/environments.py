"""Steps a second of our environments beside Gymnasium's, in turn, on one machine.

`python -m benchmarks.environments` steps 16 rows of each, round after round: Gymnasium's in a SyncVectorEnv, ours with
two threads, under the same random actions. The medians over the rounds are compared.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from rldsl import Atari, Environment, MuJoCo
from rldsl.envs.bench import speed
from rldsl.envs.contract import VectorEnv
from rldsl.spec.implementation import implementation

ROWS, THREADS = 16, 2
GOALS = {"Hopper-v5": 2.2, "HalfCheetah-v5": 2.2, "Humanoid-v5": 1.7, "Pong": 2.0}
"""How many times Gymnasium's speed is to be reached."""


class Theirs:
    """Gymnasium's rows as `speed` steps ours; it needs no more of them than this."""

    def __init__(self, make_row: Callable[[], gymnasium.Env[Any, Any]], spaces: Any) -> None:
        self.rows, self.spaces = ROWS, spaces
        self.envs = SyncVectorEnv([make_row] * ROWS, autoreset_mode=AutoresetMode.SAME_STEP)

    def reset(self, seeds: list[int]) -> None:
        self.envs.reset(seed=seeds)

    def step(self, actions: Any) -> None:
        self.envs.step(actions)

    def close(self) -> None:
        self.envs.close()


def gymnasium_row(id: str) -> gymnasium.Env[Any, Any]:
    if id.endswith("-v5"):
        return gymnasium.make(id)
    return FrameStackObservation(AtariPreprocessing(gymnasium.make(f"ALE/{id}-v5", frameskip=1)), 4)


def compare(id: str, rounds: int, seconds: float) -> dict[str, Any]:
    """The medians of both, and their ratio."""
    env: Environment = MuJoCo(id) if id.endswith("-v5") else Atari(id)
    ours: VectorEnv = implementation(env)(env, ROWS, THREADS)
    theirs: Any = Theirs(lambda: gymnasium_row(id), ours.spaces)
    with closing(ours), closing(theirs):
        measured = [(speed(ours, seconds), speed(theirs, seconds)) for _ in range(rounds)]
    own, other = (median(column) for column in zip(*measured, strict=True))
    return {"env": id, "ours": own, "gymnasium": other, "ratio": own / other, "goal": GOALS[id]}


def main() -> None:
    """Prints a line for each environment; `--json` keeps them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="times that each is measured")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each time")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    import ale_py

    gymnasium.register_envs(ale_py)
    numbers = []
    for id in GOALS:
        one = compare(id, options.rounds, options.seconds)
        numbers.append(one)
        print(f"{id:16} {one['ours']:9,.0f} against {one['gymnasium']:9,.0f} steps a second: ", end="")
        print(f"{one['ratio']:.2f}x (goal {one['goal']})", flush=True)
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
