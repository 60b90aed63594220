"""The state of one Gymnasium environment and its wrappers, where they can save one.

An environment that defines `get_state()` and `set_state(state)` can be resumed exactly. Its RNG `np_random` and its
time limit are saved for it. A wrapper that keeps something from step to step defines the two methods too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
from gymnasium.wrappers import FlattenObservation, OrderEnforcing, PassiveEnvChecker, TimeLimit

from rldsl.envs.contract import EnvError
from rldsl.maths.streams import restore_stream, stream_state

STATELESS = (
    gymnasium.ObservationWrapper,
    gymnasium.ActionWrapper,
    gymnasium.RewardWrapper,
    FlattenObservation,
    PassiveEnvChecker,
)
"""Wrappers that are functions of what passes through them."""


class StatelessWrapper(gymnasium.Wrapper):
    """The base of our own wrappers, which keep nothing from step to step."""


def can_save(env: gymnasium.Env) -> bool:
    """Whether the environment and all of its wrappers can save and restore their state."""
    return _has_state(env.unwrapped) and all(_saves_wrapper(layer) for layer in _wrappers(env))


def save(env: gymnasium.Env) -> dict[str, Any]:
    """The state of the environment, its RNG and its wrappers, outermost first."""
    inner: Any = env.unwrapped
    state = inner.get_state()
    if not isinstance(state, Mapping):
        raise EnvError(
            f"get_state of {type(inner).__name__} returned a {type(state).__name__}, but should return a dict."
        )
    return {
        "env": dict(state),
        "rng": stream_state(inner.np_random),
        "wrappers": [_save_wrapper(layer) for layer in _wrappers(env)],
    }


def restore(env: gymnasium.Env, state: Mapping[str, Any]) -> None:
    """Restores what `save` returned."""
    inner: Any = env.unwrapped
    inner.set_state(state["env"])
    restore_stream(inner.np_random, state["rng"])
    for layer, saved in zip(_wrappers(env), state["wrappers"], strict=True):
        _restore_wrapper(layer, saved)


def _wrappers(env: gymnasium.Env) -> Iterator[gymnasium.Wrapper]:
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env


def _has_state(layer: Any) -> bool:
    return all(callable(getattr(type(layer), name, None)) for name in ("get_state", "set_state"))


def _saves_wrapper(layer: gymnasium.Wrapper) -> bool:
    known = (*STATELESS, StatelessWrapper, TimeLimit, OrderEnforcing)
    return _has_state(layer) or isinstance(layer, known)


def _save_wrapper(layer: Any) -> dict[str, Any]:
    if _has_state(layer):
        return dict(layer.get_state())
    return {"elapsed_steps": layer._elapsed_steps} if isinstance(layer, TimeLimit) else {}


def _restore_wrapper(layer: Any, saved: Mapping[str, Any]) -> None:
    if _has_state(layer):
        layer.set_state(saved)
    elif isinstance(layer, TimeLimit):
        layer._elapsed_steps = saved["elapsed_steps"]
