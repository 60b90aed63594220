"""Walker2d-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_1M_OF, CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

walker2d = (
    experiment("walker2d").env(MuJoCo("Walker2d-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(3500)
)

ppo = walker2d.agent(PPO_OF["Walker2d-v5"]).frames(1e7)
sac = walker2d.agent(SAC_OF["Walker2d-v5"]).frames(3e6)
crossq = walker2d.agent(CROSSQ_OF["Walker2d-v5"]).frames(7e6)

walker2d_1m = walker2d.env(MuJoCo("Walker2d-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = walker2d_1m.agent(SAC_1M_OF["Walker2d-v5"]).named("walker2d/sac-1m").target(4000)
crossq_1m = walker2d_1m.agent(CROSSQ_1M_OF["Walker2d-v5"]).named("walker2d/crossq-1m").target(5500)

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m, crossq_1m)
