"""Running mean and variance of observations `[M, N, ...]` and returns, in numpy float64, as in SB3's VecNormalize.

A state is a dict of arrays that can be checkpointed as it is; an update returns a new one.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.integer]
State = dict[str, Floats]

_PRIOR_COUNT = 1e-4  # the weight of mean 0 and variance 1 before any data, as in Gymnasium and Stable-Baselines3


def moments_state(members: int, shape: tuple[int, ...] = ()) -> State:
    """Mean 0 and variance 1 of items of `shape`, for each member: `mean`, `var` `[M, *shape]`, `count` `[M]`."""
    return {
        "mean": np.zeros((members, *shape)),
        "var": np.ones((members, *shape)),
        "count": np.full(members, _PRIOR_COUNT),
    }


def update_moments(state: State, batch: Rows) -> State:
    """Update mean and variance with a batch `[M, N, *shape]` (Chan, Golub & LeVeque 1979, eq. 2.1):
    mean = mean_a + d * n_b / n, var = (n_a * var_a + n_b * var_b + d^2 * n_a * n_b / n) / n, d = mean_b - mean_a."""
    items = batch.shape[1]
    batch_mean = np.add.reduce(batch, 1, dtype=np.float64) / items
    batch_var = np.add.reduce(np.square(batch - batch_mean[:, None]), 1) / items
    total = state["count"] + items
    share = _columns(items / total, batch_mean)
    delta = batch_mean - state["mean"]
    return {
        "mean": state["mean"] + delta * share,
        "var": (1 - share) * (state["var"] + share * np.square(delta)) + share * batch_var,
        "count": total,
    }


def normalize(state: State, x: Rows, clip: float = 10.0, eps: float = 1e-8) -> NDArray[np.float32]:
    """clamp((x - mean) / sqrt(var + eps), -clip, clip), `[M, N, *shape]`, in float32."""
    z = (x - state["mean"][:, None]) / np.sqrt(state["var"][:, None] + eps)
    return _clamp(z, clip)


def reward_scale_state(members: int, envs: int) -> State:
    """`moments_state` of discounted returns, and the running `return` `[M, N]` of each environment."""
    return {**moments_state(members), "return": np.zeros((members, envs))}


def update_reward_scale(state: State, reward: Rows, ended: NDArray[np.bool_], gamma: Floats) -> State:
    """return_t = gamma * return_{t-1} + r_t, whose moments are updated; then reset to 0 where the episode ended.
    `reward`, `ended` are `[M, N]`, `gamma` is `[M]` (Engstrom et al. 2020, arXiv:2005.12729, app. A.2)."""
    returns = gamma[:, None] * state["return"] + reward
    return {**update_moments(state, returns), "return": np.where(ended, 0.0, returns)}


def scale_reward(state: State, reward: Rows, clip: float = 10.0, eps: float = 1e-8) -> NDArray[np.float32]:
    """clamp(r / sqrt(var + eps), -clip, clip), `[M, N]`, in float32. Not centred, so that rewards keep their sign."""
    return _clamp(reward / np.sqrt(state["var"] + eps)[:, None], clip)


def _columns(x: Floats, like: Floats) -> Floats:
    return x.reshape(x.shape + (1,) * (like.ndim - 1))


def _clamp(x: Floats, clip: float) -> NDArray[np.float32]:
    return np.minimum(np.maximum(x, -clip), clip).astype(np.float32)
