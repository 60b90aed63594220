"""Pendulum-v1: PPO, A2C, SAC and CrossQ.

The settings were chosen on seeds 0 to 3; the benchmark has seeds of its own.
"""

from rldsl import A2C, MLP, PPO, SAC, Adam, Classic, CrossQ, Linear, experiment, main

pendulum = experiment("pendulum").env(Classic("Pendulum-v1", num_envs=4)).seeds(4, first=100).log_every(500).frames(3e5)

ppo = pendulum.agent(
    PPO(
        gamma=0.95,
        lr=Linear(1e-3),
        rollout=256,
        minibatch=128,
        log_std=-0.5,
        normalize_observations=True,
        normalize_rewards=True,
    )
).target(-175)
a2c = pendulum.agent(
    A2C(
        gamma=0.95,
        rollout=32,
        lr=Linear(2e-3),
        critic_lr=Linear(1e-2),
        entropy=0.0,
        net=MLP((64, 64), activation="relu"),
        normalize_advantages=True,
        normalize_observations=True,
        normalize_rewards=True,
        optimizer=Adam(),
    )
).target(-200)

RELU = MLP((64, 64), activation="relu")

sac = pendulum.agent(
    SAC(
        gamma=0.98,
        lr=Linear(1e-3),
        updates_per_frame=0.25,
        batch=128,
        buffer=200_000,
        target_entropy=-2.0,
        net=RELU,
    )
).target(-150)
crossq = pendulum.agent(
    CrossQ(
        gamma=0.98,
        lr=Linear(1e-3),
        updates_per_frame=0.25,
        batch=128,
        buffer=200_000,
        target_entropy=-2.0,
        renorm_after=5_000,
        net=RELU,
        critic_net=None,
    )
).target(-146)

if __name__ == "__main__":
    main(ppo, a2c, sac, crossq)
