"""Pendulum-v1: PPO, A2C, SAC and CrossQ.

The settings were chosen on seeds 0 to 3; the benchmark has seeds of its own.
"""

from classic_settings import SMALL_CROSSQ, SMALL_SAC

from rldsl import A2C, MLP, PPO, Adam, Classic, Linear, experiment, log_uniform, logit_uniform, main

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

sac = pendulum.agent(SMALL_SAC.with_(gamma=0.98, target_entropy=-2.0)).target(-150)
crossq = pendulum.agent(SMALL_CROSSQ.with_(gamma=0.98, target_entropy=-2.0)).target(-146)
ppo_search = ppo.search(
    {"agent.lr.start": log_uniform(3e-4, 3e-3)}, gamma=logit_uniform(0.9, 0.99), lam=logit_uniform(0.9, 0.99)
).asha(trials=16)

if __name__ == "__main__":
    main(ppo, a2c, sac, crossq, ppo_search)
