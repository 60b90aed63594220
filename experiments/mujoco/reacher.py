"""Reacher-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

reacher = experiment("reacher").env(MuJoCo("Reacher-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(-10)

ppo = reacher.agent(PPO_OF["Reacher-v5"]).frames(4e6)
sac = reacher.agent(SAC_OF["Reacher-v5"]).frames(1e6)
crossq = reacher.agent(CROSSQ_OF["Reacher-v5"]).frames(2e6)

reacher_1m = reacher.env(MuJoCo("Reacher-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = reacher_1m.agent(SAC_1M_OF["Reacher-v5"]).named("reacher/sac-1m")

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m)
