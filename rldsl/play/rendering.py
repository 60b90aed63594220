"""One environment that can be seen: rendered in a window, or recorded as a video.

Our own vector environments have no renderer. Gymnasium's environment, which equals them bit for bit, is rendered in
their place. Where observations are screens, the video shows what the agent sees.
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
from rldsl.play.video import VideoRecorder
from rldsl.spec.environment import Atari, Box2D, Classic, Environment, Gym, MuJoCo
from rldsl.spec.implementation import implementation

EMULATED_FPS = 60
PIXEL_SCALE = 4
"""Pixels of a video, in each direction, for one pixel of a screen."""


@singledispatch
def make_rendered_env(env: Environment, video: VideoRecorder | None) -> VectorEnv:
    """One row of an environment whose steps are recorded in the video, or shown in a window if there is none.

    `make_rendered_env.register` adds a renderer for an environment of one's own.
    """
    return _screens(env, video, fps=30)


@make_rendered_env.register
def _(env: Classic, video: VideoRecorder | None) -> VectorEnv:
    return _rendered(env.id, video)


@make_rendered_env.register
def _(env: Box2D, video: VideoRecorder | None) -> VectorEnv:
    return _rendered(env.id, video, max_episode_steps=env.max_episode_steps)


@make_rendered_env.register
def _(env: MuJoCo, video: VideoRecorder | None) -> VectorEnv:
    return _rendered(env.id, video, native(env.options))


@make_rendered_env.register
def _(env: Gym, video: VideoRecorder | None) -> VectorEnv:
    return _rendered(env.id, video, env.kwargs, env.max_episode_steps, env.wrappers)


@make_rendered_env.register
def _(env: Atari, video: VideoRecorder | None) -> VectorEnv:
    return _screens(env, video, EMULATED_FPS / env.frame_skip)


def _rendered(
    id: str,
    video: VideoRecorder | None,
    kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    wrappers: Sequence[Wrap] = (),
) -> VectorEnv:
    """Gymnasium's own renderer, in the render mode `human` or `rgb_array`."""
    mode = "human" if video is None else "rgb_array"
    recording: tuple[Wrap, ...] = () if video is None else (partial(_Recorded, video=video, id=id),)
    try:
        return GymnasiumEnv(id, 1, {**(kwargs or {}), "render_mode": mode}, max_episode_steps, (*wrappers, *recording))
    except EnvError as error:
        raise EnvError(f"{error}{_opengl_hint(id)}") from error


class _Recorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Records every step from inside the vector environment, where the last image of an episode can be rendered."""

    def __init__(self, env: gymnasium.Env[Any, Any], video: VideoRecorder, id: str) -> None:
        super().__init__(env)
        self.video, self.id = video, id

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        self.video.begin_episode(self._image(), self.env.metadata.get("render_fps", 30))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = self.env.step(action)
        self.video.add(self._image())
        return result

    def _image(self) -> np.ndarray:
        try:
            image = self.env.render()
        except Exception as error:  # renderers raise their own exceptions where there is no OpenGL
            reason = str(error).partition("\n")[0].rstrip(".")
            raise EnvError(f"{self.id} cannot be rendered on this machine: {reason}.{_opengl_hint(self.id)}") from error
        if not isinstance(image, np.ndarray):
            raise EnvError(f"{self.id} gives no picture: its render mode 'rgb_array' should return an array.")
        return image


def _opengl_hint(id: str) -> str:
    """What to install if a MuJoCo environment cannot be rendered."""
    entry = str(getattr(gymnasium.registry.get(id), "entry_point", ""))
    hint = " MuJoCo needs OpenGL: install EGL or OSMesa, and say which by MUJOCO_GL=egl or MUJOCO_GL=osmesa."
    return hint if "mujoco" in entry else ""


def _screens(env: Environment, video: VideoRecorder | None, fps: float) -> VectorEnv:
    made: VectorEnv = implementation(env)(env, 1, 1)
    if video is None or len(made.spaces.observation_shape) != 3:
        made.close()
        way = "shown in a window" if video is None else "filmed"
        raise EnvError(f"{env.label} cannot be {way}: {type(env).__name__} has no renderer.")
    return _RecordedScreens(made, video, fps)


class _RecordedScreens(VectorEnv):
    """Records the newest screen of each observation `[screens, height, width]`."""

    def __init__(self, env: VectorEnv, video: VideoRecorder, fps: float) -> None:
        self.env, self.video, self.fps = env, video, fps
        self.rows, self.spaces = env.rows, env.spaces

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        observation = self.env.reset(seeds)
        self.video.begin_episode(_image(observation[0]), self.fps)
        return observation

    def step(self, actions: np.ndarray) -> Step:
        step = self.env.step(actions)
        if step.ended.size:
            self.video.add(_image(step.final_observation[0]))
            self.video.begin_episode(_image(step.observation[0]), self.fps)
        else:
            self.video.add(_image(step.observation[0]))
        return step

    def close(self) -> None:
        self.env.close()


def _image(screens: np.ndarray) -> np.ndarray:
    large = screens[-1].repeat(PIXEL_SCALE, 0).repeat(PIXEL_SCALE, 1)
    return np.repeat(large[..., None], 3, 2)
