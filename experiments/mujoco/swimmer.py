"""Swimmer-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

swimmer = experiment("swimmer").env(MuJoCo("Swimmer-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(200)

ppo = swimmer.agent(PPO_OF["Swimmer-v5"]).frames(4e6)
sac = swimmer.agent(SAC_OF["Swimmer-v5"]).frames(2e6)
crossq = swimmer.agent(CROSSQ_OF["Swimmer-v5"]).frames(3e6)

swimmer_1m = swimmer.env(MuJoCo("Swimmer-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = swimmer_1m.agent(SAC_1M_OF["Swimmer-v5"]).named("swimmer/sac-1m")

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m)
