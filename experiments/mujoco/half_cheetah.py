"""HalfCheetah-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_1M_OF, CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

cheetah = (
    experiment("half-cheetah")
    .env(MuJoCo("HalfCheetah-v5", num_envs=16))
    .seeds(4, first=100)
    .log_every(1e4)
    .target(5000)
)

ppo = cheetah.agent(PPO_OF["HalfCheetah-v5"]).frames(1e7)
sac = cheetah.agent(SAC_OF["HalfCheetah-v5"]).frames(4e6)
crossq = cheetah.agent(CROSSQ_OF["HalfCheetah-v5"]).frames(4e6)

cheetah_1m = cheetah.env(MuJoCo("HalfCheetah-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = cheetah_1m.agent(SAC_1M_OF["HalfCheetah-v5"]).named("half-cheetah/sac-1m").target(9600)
crossq_1m = cheetah_1m.agent(CROSSQ_1M_OF["HalfCheetah-v5"]).named("half-cheetah/crossq-1m").target(10000)

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m, crossq_1m)
