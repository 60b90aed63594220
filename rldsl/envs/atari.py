"""Atari games on ale_py's vector environment, which emulates and preprocesses a batch in C++."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from rldsl.envs.contract import Discrete, EnvError, Spaces, Step, VectorEnv
from rldsl.spec.environment import Atari

SIDE = 84
"""Height and width of a preprocessed frame: Mnih et al. (2015)."""


class AtariEnv(VectorEnv):
    """A batch of one game. Rewards are raw; `learning_reward` and `life_lost` hold what learning uses instead.

    `exact_resume` is False because ale_py's vector environment cannot save the states of its emulators.
    """

    def __init__(self, env: Atari, rows: int, threads: int = 1) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows
        self.game = env
        self._emulators = _emulators(env, rows, threads)
        self._lives = np.zeros(rows, np.int32)
        action_space: Any = self._emulators.single_action_space
        self._actions = int(action_space.n)
        self.spaces = Spaces((env.stack, SIDE, SIDE), np.dtype(np.uint8), Discrete(self._actions), env.stack)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        observation: np.ndarray
        observation, info = self._emulators.reset(seed=np.array(self._checked_seeds(seeds)))
        self._lives = info["lives"]
        return observation

    def step(self, actions: np.ndarray) -> Step:
        observation, score, terminated, truncated, info = self._emulators.step(self._checked(actions))
        reward = score.astype(np.float64)
        over = terminated | truncated
        ended = over.nonzero()[0]
        final_observation = info.get("final_obs", observation)[ended]  # only present if an episode ended
        learning_reward = np.sign(reward) if self.game.clip_rewards else None
        life_lost = (info["lives"] < self._lives) & ~over if self.game.life_loss else None
        self._lives = info["lives"]
        return Step(observation, reward, terminated, truncated, ended, final_observation, learning_reward, life_lost)

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """Rejects invalid actions, on which ale_py's vector environment would hang."""
        if actions.min() < 0 or actions.max() >= self._actions:
            raise EnvError(f"The actions of {self.game.id} are 0 to {self._actions - 1}, but got {actions}.")
        return actions

    def close(self) -> None:
        self._emulators.close()


def _emulators(env: Atari, rows: int, threads: int) -> AtariVectorEnv:
    """Every option is set explicitly, so that a changed default of ale_py cannot change results."""
    return AtariVectorEnv(
        _rom(env.id),
        rows,
        num_threads=min(rows, threads),
        autoreset_mode=AutoresetMode.SAME_STEP,
        max_num_frames_per_episode=env.max_frames,
        repeat_action_probability=env.sticky,
        full_action_space=env.full_actions,
        img_height=SIDE,
        img_width=SIDE,
        grayscale=True,
        maxpool=True,
        stack_num=env.stack,
        frameskip=env.frame_skip,
        noop_max=env.noop_max,
        use_fire_reset=env.fire_reset,
        episodic_life=False,
        life_loss_info=False,  # it does not distinguish a lost life from the end of a game; info["lives"] does
        reward_clipping=False,
    )


def _rom(game: str) -> str:
    """The ROM id of a game: ms_pacman for MsPacman."""
    files = {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}
    return files[game]
