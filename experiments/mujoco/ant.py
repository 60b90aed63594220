"""Ant-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_1M_OF, CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

ant = experiment("ant").env(MuJoCo("Ant-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(2000)

ppo = ant.agent(PPO_OF["Ant-v5"]).frames(1e7)
sac = ant.agent(SAC_OF["Ant-v5"]).frames(2e6)
crossq = ant.agent(CROSSQ_OF["Ant-v5"]).frames(3e6)

ant_1m = ant.env(MuJoCo("Ant-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = ant_1m.agent(SAC_1M_OF["Ant-v5"]).named("ant/sac-1m").target(4500)
crossq_1m = ant_1m.agent(CROSSQ_1M_OF["Ant-v5"]).named("ant/crossq-1m").target(6000)

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m, crossq_1m)
