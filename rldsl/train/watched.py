"""One row of an environment to look at: in a window, or as pictures on a film.

Our own batches have nothing to show. What is watched in their place is Gymnasium's own environment, which is equal to
them bit for bit, or for an environment whose observations are screens, what the agent sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

import gymnasium
import numpy as np

from rldsl.envs.contract import EnvError, Step, VectorEnv
from rldsl.envs.gym import GymnasiumEnv
from rldsl.envs.gym_make import Wrap
from rldsl.envs.mujoco.options import native
from rldsl.spec.environment import Atari, Box2D, Classic, Environment, Gym, MuJoCo
from rldsl.spec.implementation import implementation
from rldsl.train.video import Film

EMULATED_FPS = 60
SCALE = 4
"""How many pixels a film has for one of a screen, each way."""


@singledispatch
def watched(env: Environment, film: Film | None) -> VectorEnv:
    """One row whose steps appear on the film, or in a window if there is none.

    `watched.register` teaches it a spec of one's own.
    """
    return _screens(env, film, fps=30)


@watched.register
def _(env: Classic, film: Film | None) -> VectorEnv:
    return _rendered(env.id, film)


@watched.register
def _(env: Box2D, film: Film | None) -> VectorEnv:
    return _rendered(env.id, film, max_episode_steps=env.max_episode_steps)


@watched.register
def _(env: MuJoCo, film: Film | None) -> VectorEnv:
    return _rendered(env.id, film, native(env.options))


@watched.register
def _(env: Gym, film: Film | None) -> VectorEnv:
    return _rendered(env.id, film, env.kwargs, env.max_episode_steps, env.wrappers)


@watched.register
def _(env: Atari, film: Film | None) -> VectorEnv:
    return _screens(env, film, EMULATED_FPS / env.frame_skip)


def _rendered(
    id: str,
    film: Film | None,
    kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    wrappers: Sequence[Wrap] = (),
) -> VectorEnv:
    """Gymnasium's own renderer: a window draws itself, pictures are asked for."""
    mode = "human" if film is None else "rgb_array"
    filming = () if film is None else (partial(_Filmed, film=film, id=id),)
    try:
        return GymnasiumEnv(id, 1, {**(kwargs or {}), "render_mode": mode}, max_episode_steps, (*wrappers, *filming))
    except EnvError as error:
        raise EnvError(f"{error}{_opengl(id)}") from error


class _Filmed(gymnasium.Wrapper):
    """Films every step, the last of an episode included: seen from outside the row, that one is reset already."""

    def __init__(self, env: gymnasium.Env, film: Film, id: str) -> None:
        super().__init__(env)
        self.film, self.id = film, id

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        self.film.begin(self._picture(), self.env.metadata.get("render_fps", 30))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = self.env.step(action)
        self.film.add(self._picture())
        return result

    def _picture(self) -> np.ndarray:
        try:
            picture = self.env.render()
        except Exception as error:  # every renderer has its own way to say that there is no OpenGL
            reason = str(error).partition("\n")[0].rstrip(".")
            raise EnvError(f"{self.id} cannot be rendered on this machine: {reason}.{_opengl(self.id)}") from error
        if not isinstance(picture, np.ndarray):
            raise EnvError(f"{self.id} gives no picture: its render mode 'rgb_array' should return an array.")
        return picture


def _opengl(id: str) -> str:
    """What helps where it is MuJoCo that cannot."""
    entry = str(getattr(gymnasium.registry.get(id), "entry_point", ""))
    hint = " MuJoCo needs OpenGL: install EGL or OSMesa, and say which by MUJOCO_GL=egl or MUJOCO_GL=osmesa."
    return hint if "mujoco" in entry else ""


def _screens(env: Environment, film: Film | None, fps: float) -> VectorEnv:
    made: VectorEnv = implementation(env)(env, 1, 1)
    if film is None or len(made.spaces.observation_shape) != 3:
        made.close()
        way = "shown in a window" if film is None else "filmed"
        raise EnvError(f"{env.label} cannot be {way}: {type(env).__name__} has no renderer.")
    return _FilmedScreens(made, film, fps)


class _FilmedScreens(VectorEnv):
    """Films the newest screen of each observation `[screens, height, width]`."""

    def __init__(self, env: VectorEnv, film: Film, fps: float) -> None:
        self.env, self.film, self.fps = env, film, fps
        self.rows, self.spaces = env.rows, env.spaces

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        observation = self.env.reset(seeds)
        self.film.begin(_picture(observation[0]), self.fps)
        return observation

    def step(self, actions: np.ndarray) -> Step:
        step = self.env.step(actions)
        if step.ended.size:
            self.film.add(_picture(step.final_observation[0]))
            self.film.begin(_picture(step.observation[0]), self.fps)
        else:
            self.film.add(_picture(step.observation[0]))
        return step

    def close(self) -> None:
        self.env.close()


def _picture(screens: np.ndarray) -> np.ndarray:
    large = screens[-1].repeat(SCALE, 0).repeat(SCALE, 1)
    return np.repeat(large[..., None], 3, 2)
