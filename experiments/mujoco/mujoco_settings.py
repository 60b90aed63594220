"""Settings of the MuJoCo family, tied to the tasks that they are for."""

from rldsl import PPO, Linear

LOCOMOTION = PPO(
    lr=Linear(3e-4),
    rollout=128,
    value_coef=0.25,
    normalize_advantages=False,
    recompute_advantages=True,
    normalize_observations=True,
    normalize_rewards=True,
)
"""Tianshou's for locomotion: Weng et al. (2022)."""

PPO_OF = {"Hopper-v5": LOCOMOTION, "HalfCheetah-v5": LOCOMOTION}
