"""HumanoidStandup-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

standup = (
    experiment("humanoid-standup")
    .env(MuJoCo("HumanoidStandup-v5", num_envs=16))
    .seeds(4, first=100)
    .log_every(1e4)
    .target(100000)
)

ppo = standup.agent(PPO_OF["HumanoidStandup-v5"]).frames(4e6)
sac = standup.agent(SAC_OF["HumanoidStandup-v5"]).frames(1e6)
crossq = standup.agent(CROSSQ_OF["HumanoidStandup-v5"]).frames(2e6)

standup_1m = standup.env(MuJoCo("HumanoidStandup-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = standup_1m.agent(SAC_1M_OF["HumanoidStandup-v5"]).named("humanoid-standup/sac-1m")

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m)
