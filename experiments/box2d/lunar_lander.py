"""LunarLander-v3: PPO.

The settings were chosen on seeds 0 to 3; the benchmark has seeds of its own.
"""

from rldsl import PPO, Box2D, Linear, experiment, main

lunar_lander = (
    experiment("lunar-lander").env(Box2D("LunarLander-v3", num_envs=8)).seeds(4, first=100).log_every(1e3).frames(3e5)
)

ppo = lunar_lander.agent(
    PPO(
        gamma=0.999,
        lam=0.98,
        lr=Linear(1e-3),
        entropy=0.001,
        rollout=128,
        recompute_advantages=True,
        normalize_observations=True,
        normalize_rewards=True,
    )
).target(200)

if __name__ == "__main__":
    main(ppo)
