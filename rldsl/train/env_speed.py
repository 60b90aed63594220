"""`python -m rldsl.train.env_speed --env JSON ...`: steps a second of environments under random actions.

Prints a line of JSON for each, as it is measured: its `speed`, or the `problem` that is in the way.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing

import numpy as np

from rldsl.envs.contract import Continuous, VectorEnv
from rldsl.envs.seeding import row_seeds
from rldsl.spec.environment import Environment
from rldsl.spec.implementation import implementation

WARM_UP = 0.2
"""Part of the time for which it runs before it is measured."""
DRAWN = 64
"""Random actions drawn beforehand: drawing them is no part of the environment."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    for data in options.env:
        try:
            env = Environment.parse(data)
            with closing(implementation(env)(env, options.rows, options.threads)) as rows:
                said = {"speed": speed(rows, options.seconds)}
        except Exception as error:  # whatever is wrong with one is no reason to measure no other
            said = {"problem": str(error).partition("\n")[0] or type(error).__name__}
        print(json.dumps(said), flush=True)  # noqa: T201
    return 0


def speed(env: VectorEnv, seconds: float) -> float:
    """Steps a second, summed over the rows."""
    actions = random_actions(env)
    env.reset(row_seeds(0, env.rows))
    _steps(env, actions, WARM_UP * seconds)
    began = time.perf_counter()
    steps = _steps(env, actions, seconds)
    return steps * env.rows / (time.perf_counter() - began)


def random_actions(env: VectorEnv) -> np.ndarray:
    """Some for each row, `[DRAWN, rows, ...]`."""
    random, action = np.random.default_rng(0), env.spaces.action
    if isinstance(action, Continuous):
        return random.uniform(-1.0, 1.0, (DRAWN, env.rows, *action.shape))
    return random.integers(action.n, size=(DRAWN, env.rows))


def _steps(env: VectorEnv, actions: np.ndarray, seconds: float) -> int:
    end, steps = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        env.step(actions[steps % DRAWN])
        steps += 1
    return steps


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.train.env_speed", description=__doc__)
    parser.add_argument("--env", action="append", type=json.loads, required=True, help="the JSON of an environment")
    parser.add_argument("--rows", type=int, default=16, help="environments that are stepped together")
    parser.add_argument("--threads", type=int, default=1, help="threads that step them")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each is measured")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
