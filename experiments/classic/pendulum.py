"""Pendulum-v1: PPO and A2C."""

from rldsl import A2C, PPO, Adam, Classic, Linear, experiment, main

pendulum = experiment("pendulum").env(Classic("Pendulum-v1", num_envs=4)).seeds(4).log_every(500).frames(3e5)

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
        lam=0.9,
        rollout=8,
        lr=Linear(7e-4),
        critic_lr=Linear(3e-3),
        entropy=0.0,
        log_std=-0.5,
        normalize_advantages=True,
        normalize_observations=True,
        normalize_rewards=True,
        optimizer=Adam(),
    )
).target(-200)

if __name__ == "__main__":
    main(ppo, a2c)
