"""Hopper-v5: PPO."""

from mujoco_settings import PPO_OF

from rldsl import MuJoCo, experiment, main

hopper = experiment("hopper").env(MuJoCo("Hopper-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(2000)

ppo = hopper.agent(PPO_OF["Hopper-v5"]).frames(4e6)

if __name__ == "__main__":
    main(ppo)
