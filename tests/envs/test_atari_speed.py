"""Rows of a game against Gymnasium's way to the same screens."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from time import perf_counter

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from benchmarks.environments import gymnasium_row
from rldsl import Atari
from rldsl.envs.atari import AtariEnv

ROWS, STEPS, ROUNDS = 8, 40, 4


def seconds(step: Callable[[np.ndarray], object]) -> float:
    actions = np.random.default_rng(0).integers(6, size=(STEPS, ROWS))
    start = perf_counter()
    for action in actions:
        step(action)
    return perf_counter() - start


def test_a_step_is_faster_than_gymnasiums() -> None:
    """The best of some rounds; how much faster it is depends on the cores that are free."""
    import ale_py

    gymnasium.register_envs(ale_py)
    theirs = SyncVectorEnv([partial(gymnasium_row, "Pong")] * ROWS, autoreset_mode=AutoresetMode.SAME_STEP)
    with closing(theirs), closing(AtariEnv(Atari("Pong"), ROWS, threads=2)) as ours:
        assert theirs.reset(seed=0)[0].shape == ours.reset(range(ROWS)).shape
        rounds = [(seconds(theirs.step), seconds(ours.step)) for _ in range(ROUNDS)]
    their_best, our_best = np.min(rounds, axis=0)
    print(f"{their_best / our_best:.2f} times as fast")
    assert their_best / our_best > 1.2
