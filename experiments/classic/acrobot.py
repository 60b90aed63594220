"""Acrobot-v1: PPO, PPO with self-imitation, A2C, DQN, SAC, CrossQ.

The settings were chosen on seeds 0 to 3; the benchmark has seeds of its own.
"""

from classic_settings import DISCRETE_CROSSQ, DISCRETE_SAC, RELU

from rldsl import A2C, DQN, PPO, SIL, Adam, Classic, Linear, Prioritized, experiment, main

acrobot = experiment("acrobot").env(Classic("Acrobot-v1", num_envs=4)).seeds(4, first=100).log_every(500).frames(3e5)

PPO_SETTINGS = PPO(gamma=0.98, lr=Linear(2e-3), rollout=256, minibatch=128)

ppo = acrobot.agent(PPO_SETTINGS).target(-82)
ppo_sil = (
    acrobot.agent(PPO_SETTINGS.with_(sil=SIL(updates=4, batch=128, buffer=10_000))).named("acrobot/ppo-sil").target(-84)
)
a2c = acrobot.agent(
    A2C(
        gamma=0.98,
        lam=0.98,
        rollout=16,
        lr=Linear(2e-3),
        critic_lr=Linear(5e-3),
        entropy=Linear(0.02, over=60_000),
        normalize_advantages=True,
        optimizer=Adam(),
    )
).target(-84)

Q_LEARNING = DQN(
    double=True,
    lr=Linear(1e-3),
    epsilon=Linear(1.0, 0.01, over=30_000),
    updates_per_frame=0.5,
    buffer=50_000,
    tau=0.01,
    target_every=1,
    net=RELU,
)

dqn = acrobot.agent(Q_LEARNING).target(-90)
ddqn_per = acrobot.agent(Q_LEARNING.with_(prioritized=Prioritized())).named("acrobot/ddqn-per").target(-84)
sac = acrobot.agent(DISCRETE_SAC).target(-90)
crossq = acrobot.agent(DISCRETE_CROSSQ).target(-95)

if __name__ == "__main__":
    main(ppo, ppo_sil, a2c, dqn, ddqn_per, sac, crossq)
