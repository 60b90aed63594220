"""Humanoid-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_1M_OF, CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

humanoid = (
    experiment("humanoid").env(MuJoCo("Humanoid-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(1000)
)

ppo = humanoid.agent(PPO_OF["Humanoid-v5"]).frames(1e7)
sac = humanoid.agent(SAC_OF["Humanoid-v5"]).frames(1e6)
crossq = humanoid.agent(CROSSQ_OF["Humanoid-v5"]).frames(2e6)

humanoid_1m = humanoid.env(MuJoCo("Humanoid-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = humanoid_1m.agent(SAC_1M_OF["Humanoid-v5"]).named("humanoid/sac-1m").target(4500)
crossq_1m = humanoid_1m.agent(CROSSQ_1M_OF["Humanoid-v5"]).named("humanoid/crossq-1m").target(7000)

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m, crossq_1m)
