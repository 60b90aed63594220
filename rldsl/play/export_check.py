"""Comparison of an exported policy with the policy itself, on random observations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from rldsl.envs.contract import Continuous, Discrete, VectorEnv
from rldsl.envs.seeding import row_seeds
from rldsl.play.export_formats import Run
from rldsl.play.policy import TrainedPolicy
from rldsl.play.policy_module import PolicyModule

BATCHES = ((1, 16), (16, 16))
"""Batch size and number of consecutive observations, which a recurrent policy remembers."""
WALK = 64
"""Steps with random actions, which show what observations look like."""
TOLERANCE = 1e-4
"""Largest difference of an action relative to its range, and of two equally good outputs relative to their size."""


@dataclass(frozen=True)
class Agreement:
    """How well the actions of an exported policy agree with those of the policy."""

    observations: int
    largest_difference: float
    near_ties: int
    agrees: bool


def compare(
    policy: TrainedPolicy, module: PolicyModule, run: Run, env: VectorEnv, rng: np.random.Generator
) -> Agreement:
    """Compares `run`, the policy of a file, with `policy` on random observations like those of `env`."""
    seen = _walk(env, rng)
    count, ties, largest, agrees = 0, 0, 0.0, True
    for size, steps in BATCHES:
        policy.reset()
        state = np.zeros((size, module.state_size), np.float32)
        for observation in _random_observations(seen, rng, steps, size):
            inputs = [observation, state] if module.recurrent else [observation]
            output, _ = module.output(torch.from_numpy(observation), torch.from_numpy(state))
            expected, (action, *next_state) = policy(observation), run(inputs)
            state = next_state[0] if next_state else state
            difference = np.abs(np.asarray(action, np.float64) - expected)
            if isinstance(policy.spaces.action, Discrete):
                tied = (difference > 0) & _near_tie(output.numpy())
                ties, difference = ties + int(tied.sum()), np.where(tied, 0.0, difference)
            count, largest = count + size, max(largest, float(difference.max()))
            agrees &= action.shape == expected.shape and bool((difference <= _allowed(policy, expected)).all())
    return Agreement(count, largest, ties, agrees)


def _walk(env: VectorEnv, rng: np.random.Generator) -> np.ndarray:
    """Observations of an environment with one row under random actions."""
    action, seen = env.spaces.action, [env.reset(row_seeds(0, 1, "export"))[0].copy()]
    for _ in range(WALK):
        random = (
            rng.integers(action.n, size=1) if isinstance(action, Discrete) else rng.uniform(-1, 1, (1, *action.shape))
        )
        seen.append(env.step(random).observation[0].copy())
    return np.stack(seen)


def _random_observations(seen: np.ndarray, rng: np.random.Generator, steps: int, size: int) -> Iterator[np.ndarray]:
    """Batches of observations that were seen, disturbed by noise; of images, half are noise alone."""
    std = seen.astype(np.float32).std(0) + np.float32(0.1)
    for _ in range(steps):
        chosen = seen[rng.integers(len(seen), size=size)]
        if seen.dtype == np.uint8:
            noise = rng.integers(256, size=chosen.shape, dtype=np.uint8)
            yield np.where((rng.random(size) < 0.5).reshape(-1, *[1] * (chosen.ndim - 1)), chosen, noise)
        else:
            yield (chosen + std * rng.standard_normal(chosen.shape)).astype(np.float32)


def _near_tie(output: np.ndarray) -> np.ndarray:
    """Where the two best of the outputs `[N, A]` are equal up to rounding."""
    if output.shape[1] < 2:
        return np.zeros(len(output), bool)
    second, best = np.sort(output, -1)[:, -2:].T
    near: np.ndarray = best - second <= TOLERANCE * np.maximum(1.0, np.abs(best))
    return near


def _allowed(policy: TrainedPolicy, expected: np.ndarray) -> np.ndarray:
    action = policy.spaces.action
    if not isinstance(action, Continuous):
        return np.zeros(expected.shape)
    width = np.where(np.isfinite(action.high - action.low), action.high - action.low, 0.0)
    allowed: np.ndarray = TOLERANCE * np.maximum(np.maximum(np.abs(expected), 1.0), width.reshape(expected.shape[1:]))
    return allowed
