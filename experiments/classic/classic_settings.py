"""Settings of SAC and CrossQ for the classic tasks: discrete for CartPole and Acrobot, the others for Pendulum."""

from rldsl import MLP, SAC, CrossQ, Linear

RELU = MLP((64, 64), activation="relu")
SMALL_SAC = SAC(lr=Linear(1e-3), updates_per_frame=0.25, batch=128, buffer=200_000, net=RELU)
SMALL_CROSSQ = CrossQ(
    lr=Linear(1e-3),
    updates_per_frame=0.25,
    batch=128,
    buffer=200_000,
    renorm_after=5_000,
    net=RELU,
    critic_net=None,
)
DISCRETE_SAC = SMALL_SAC.with_(critic_reduction="mean", init_alpha=0.2, entropy_ratio=0.1)
DISCRETE_CROSSQ = SMALL_CROSSQ.with_(critic_reduction="mean", init_alpha=0.2, entropy_ratio=0.1)
