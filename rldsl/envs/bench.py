"""`python -m rldsl.envs.bench --env JSON ...`: steps per second of environments under random actions.

Prints one JSON object per line for each environment, as it is measured: its `speed`, or the `problem` that it has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from typing import Any

import numpy as np

from rldsl.envs.contract import Continuous, VectorEnv
from rldsl.envs.seeding import row_seeds
from rldsl.spec.environment import Environment
from rldsl.spec.implementation import implementation

WARM_UP = 0.2
"""Length of the warm-up, as a fraction of the measured time."""
ACTION_BATCHES = 64
"""Batches of random actions, drawn beforehand so that drawing them is not measured."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    for data in options.env:
        result: dict[str, Any]
        try:
            env = Environment.parse(data)
            with closing(implementation(env)(env, options.rows, options.threads)) as envs:
                result = {"speed": speed(envs, options.seconds)}
        except Exception as error:  # an environment that fails must not keep the others from being measured
            result = {"problem": str(error).partition("\n")[0] or type(error).__name__}
        print(json.dumps(result), flush=True)  # noqa: T201
    return 0


def speed(env: VectorEnv, seconds: float) -> float:
    """Steps per second, summed over the rows."""
    actions = random_actions(env)
    env.reset(row_seeds(0, env.rows))
    _step_for(env, actions, WARM_UP * seconds)
    began = time.perf_counter()
    steps = _step_for(env, actions, seconds)
    return steps * env.rows / (time.perf_counter() - began)


def random_actions(env: VectorEnv) -> np.ndarray:
    """Random actions for all rows, `[ACTION_BATCHES, rows, ...]`."""
    rng, action = np.random.default_rng(0), env.spaces.action
    if isinstance(action, Continuous):
        return rng.uniform(-1.0, 1.0, (ACTION_BATCHES, env.rows, *action.shape))
    return rng.integers(action.n, size=(ACTION_BATCHES, env.rows))


def _step_for(env: VectorEnv, actions: np.ndarray, seconds: float) -> int:
    end, steps = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        env.step(actions[steps % ACTION_BATCHES])
        steps += 1
    return steps


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.envs.bench", description=__doc__)
    parser.add_argument("--env", action="append", type=json.loads, required=True, help="the JSON of an environment")
    parser.add_argument("--rows", type=int, default=16, help="environments that are stepped together")
    parser.add_argument("--threads", type=int, default=1, help="threads that step them")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each is measured")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
