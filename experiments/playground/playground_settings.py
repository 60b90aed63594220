"""Settings of the MuJoCo Playground family, tied to the tasks that they are for.

Those of large batches on a GPU: 2048 environments, of which a budget of 1e8 frames sees each one for 49 episodes.
"""

from rldsl import MLP, PPO, Linear

SCALED_VALUES = PPO(
    gamma=0.995,
    lam=0.95,
    clip=0.2,
    entropy=0.01,
    lr=Linear(1e-3, 3.3e-5),
    rollout=30,
    minibatch=2048,
    epochs=16,
    max_grad_norm=1.0,
    value_coef=0.5,
    value_target_scaling=True,
    normalize_observations=True,
    net=MLP((64, 64), activation="silu"),
    critic_net=MLP((256, 256, 256), activation="silu"),
)
"""For rewards in [0, 1] that add up to values in the hundreds."""

PPO_OF = {"CartpoleBalance": SCALED_VALUES}
