"""LunarLander-v3: PPO, and double DQN with prioritized replay.

The settings were chosen on seeds 0 to 3; the benchmark has seeds of its own.
"""

from rldsl import DQN, MLP, PPO, Box2D, Linear, Prioritized, experiment, main

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
ddqn_per = (
    lunar_lander.agent(
        DQN(
            double=True,
            prioritized=Prioritized(beta=0.0),
            lr=Linear(4e-4, 4e-5),
            epsilon=Linear(1.0, 0.01, over=50_000),
            updates_per_frame=0.5,
            batch=32,
            buffer=50_000,
            learning_starts=32,
            target_every=50,
            net=MLP((256, 128), activation="relu"),
        )
    )
    .named("lunar-lander/ddqn-per")
    .target(265)
)

if __name__ == "__main__":
    main(ppo, ddqn_per)
