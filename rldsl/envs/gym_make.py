"""Makes a single Gymnasium environment from an id or class and wraps it, with one-sentence errors."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import UnregisteredEnv
from gymnasium.wrappers import RecordVideo

from rldsl.envs.contract import EnvError
from rldsl.spec.declared import is_declared, resolve
from rldsl.spec.environment import Wrapper
from rldsl.spec.errors import nearest

Wrap: TypeAlias = Wrapper | Callable[[gymnasium.Env], gymnasium.Env]
"""A wrapper by name, or a function that wraps an environment."""
OTHER_LIBRARIES = frozenset({"GymV21Environment-v0", "GymV26Environment-v0"})
"""Ids whose arguments name an environment of Gym, which may import any module."""


def make_env(
    id: str, kwargs: Mapping[str, Any], max_episode_steps: int | None, wrappers: Sequence[Wrap]
) -> gymnasium.Env:
    """`gymnasium.make(id, **kwargs)` with wrappers, innermost first.

    "module:Env-v0" is an environment that the module registers; "module:Class" is an environment class, which need not
    be registered. `rldsl.spec.declared` says which modules are used. What is called is a subclass of `gymnasium.Env` or
    `gymnasium.Wrapper`.
    """
    try:
        source = _source(id)
        env = gymnasium.make(source, max_episode_steps=max_episode_steps, disable_env_checker=True, **kwargs)
    except UnregisteredEnv:
        raise EnvError(f"There is no environment {id!r} in Gymnasium's registry{_suggestion(id)}.") from None
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, AttributeError) as error:
        raise EnvError(f"The environment {id!r} cannot be made: {_reason(error)}.") from error
    for wrapper in wrappers:
        env = _wrapped(env, wrapper) if isinstance(wrapper, Wrapper) else wrapper(env)
    return env


def _source(id: str) -> str | EnvSpec:
    module, _, name = id.rpartition(":")
    if name in OTHER_LIBRARIES and not is_declared(id):
        raise TypeError("it makes environments of another library, so the experiment file has to name it")
    env_class = resolve(id, classes=True) if module else None
    if name in gymnasium.registry or not isinstance(env_class, type):
        return name
    if not issubclass(env_class, gymnasium.Env):
        raise TypeError(f"{name} is not a gymnasium.Env")
    entry_point: Any = env_class  # Gymnasium accepts a class, but its annotation does not
    return EnvSpec(name, entry_point=entry_point)


def _suggestion(id: str) -> str:
    module, _, name = id.rpartition(":")
    close = nearest(name, [*gymnasium.registry, *(_classes(module, gymnasium.Env) if module else ())])
    return f"; the nearest are {', '.join(close)}" if close else ""


def _wrapped(env: gymnasium.Env, wrapper: Wrapper) -> gymnasium.Env:
    try:
        return _wrapper_class(wrapper.name)(env, **wrapper.kwargs)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, AttributeError, AssertionError) as error:
        env.close()
        raise EnvError(
            f"The wrapper {wrapper.name!r} cannot be applied: {_reason(error)}{_nearest(wrapper)}."
        ) from error


def _wrapper_class(name: str) -> Callable[..., gymnasium.Env]:
    found = resolve(name, classes=True)
    if found is None:
        raise AttributeError("there is no such class")
    if not isinstance(found, type) or not issubclass(found, gymnasium.Wrapper):
        raise TypeError("it is not a gymnasium.Wrapper")
    if issubclass(found, RecordVideo) and not is_declared(name):
        raise TypeError("it writes files, so the experiment file has to name it")
    return found


def _nearest(wrapper: Wrapper) -> str:
    """The wrappers of the module with similar names, if there is none with this name."""
    module, _, name = wrapper.name.partition(":")
    classes = _classes(module, gymnasium.Wrapper)
    close = [] if name in classes else nearest(name, classes)
    return f"; the nearest are {', '.join(close)}" if close else ""


def _classes(module: str, base: type) -> list[str]:
    members = vars(sys.modules[module]) if module in sys.modules else {}
    return [name for name, member in members.items() if isinstance(member, type) and issubclass(member, base)]


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
