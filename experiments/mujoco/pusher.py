"""Pusher-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, main

pusher = experiment("pusher").env(MuJoCo("Pusher-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(-50)

ppo = pusher.agent(PPO_OF["Pusher-v5"]).frames(4e6)
sac = pusher.agent(SAC_OF["Pusher-v5"]).frames(1e6)
crossq = pusher.agent(CROSSQ_OF["Pusher-v5"]).frames(2e6)

pusher_1m = pusher.env(MuJoCo("Pusher-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = pusher_1m.agent(SAC_1M_OF["Pusher-v5"]).named("pusher/sac-1m")

if __name__ == "__main__":
    main(ppo, sac, crossq, sac_1m)
