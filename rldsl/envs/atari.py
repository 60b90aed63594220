"""The games of the Arcade Learning Environment, emulated and preprocessed as one batch in C++."""

from collections.abc import Sequence

import numpy as np
from ale_py import roms
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from rldsl.envs.contract import Discrete, EnvError, Spaces, Step, VectorEnv
from rldsl.spec.environment import Atari

SIDE = 84
"""Rows and columns of a screen as it is seen: Mnih et al. (2015)."""


class AtariEnv(VectorEnv):
    """Rows of a game; the score is raw, and what differs from it for learning is in `learning_reward` and `life_lost`.

    The emulators' states stay in C++, where nothing can save them, so `exact_resume` is False.
    """

    def __init__(self, env: Atari, rows: int, threads: int = 1) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows
        self.game = env
        self._emulators = _emulators(env, rows, threads)
        self._lives = np.zeros(rows, np.int32)
        actions = Discrete(int(self._emulators.single_action_space.n))
        self.spaces = Spaces((env.stack, SIDE, SIDE), np.dtype(np.uint8), actions, env.stack)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        observation, info = self._emulators.reset(seed=np.array(self._checked_seeds(seeds)))
        self._lives = info["lives"]
        return observation

    def step(self, actions: np.ndarray) -> Step:
        observation, score, terminated, truncated, info = self._emulators.step(self._checked(actions))
        reward = score.astype(np.float64)
        over = terminated | truncated
        ended = over.nonzero()[0]
        final_observation = info.get("final_obs", observation)[ended]  # there if a row ended, and only its rows written
        learning_reward = np.sign(reward) if self.game.clip_rewards else None
        life_lost = (info["lives"] < self._lives) & ~over if self.game.life_loss else None
        self._lives = info["lives"]
        return Step(observation, reward, terminated, truncated, ended, final_observation, learning_reward, life_lost)

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """An action that the game does not have would leave the emulators waiting for ever."""
        if actions.min() < 0 or actions.max() >= self.spaces.action.n:
            raise EnvError(f"The actions of {self.game.id} are 0 to {self.spaces.action.n - 1}, but got {actions}.")
        return actions

    def close(self) -> None:
        self._emulators.close()


def _emulators(env: Atari, rows: int, threads: int) -> AtariVectorEnv:
    """What its constructor would choose otherwise, or may come to choose otherwise, is said here."""
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
        life_loss_info=False,  # it would report a lost life and the end of a game as one; the lives tell them apart
        reward_clipping=False,
    )


def _rom(game: str) -> str:
    """The file of a game, named after it as `ALE/MsPacman-v5` is after ms_pacman."""
    files = {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}
    return files[game]
