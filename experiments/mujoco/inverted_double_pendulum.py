"""InvertedDoublePendulum-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

pendulum = (
    experiment("inverted-double-pendulum")
    .env(MuJoCo("InvertedDoublePendulum-v5", num_envs=16))
    .seeds(4, first=100)
    .log_every(1e4)
    .target(8000)
)

ppo = pendulum.agent(PPO_OF["InvertedDoublePendulum-v5"]).frames(1e7)
sac = pendulum.agent(SAC_OF["InvertedDoublePendulum-v5"]).frames(2e6)
crossq = pendulum.agent(CROSSQ_OF["InvertedDoublePendulum-v5"]).frames(2e6)

pendulum_1m = pendulum.env(MuJoCo("InvertedDoublePendulum-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = pendulum_1m.agent(SAC_1M_OF["InvertedDoublePendulum-v5"]).named("inverted-double-pendulum/sac-1m")

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m)
