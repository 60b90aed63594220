"""HalfCheetah-v5: PPO."""

from mujoco_settings import PPO_OF

from rldsl import MuJoCo, experiment, main

cheetah = experiment("half-cheetah").env(MuJoCo("HalfCheetah-v5", num_envs=16)).seeds(4, first=100).log_every(1e4)

ppo = cheetah.agent(PPO_OF["HalfCheetah-v5"]).frames(3e6).target(5000)

if __name__ == "__main__":
    main(ppo)
