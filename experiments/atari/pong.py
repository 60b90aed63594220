"""Pong: PPO."""

from atari_settings import PPO_OF

from rldsl import Atari, experiment, main

pong = experiment("pong").env(Atari("Pong", num_envs=16)).seeds(1, first=100).log_every(1e4)

ppo = pong.agent(PPO_OF["Pong"]).frames(1e6).compute(threads=2, compile="on")

if __name__ == "__main__":
    main(ppo)
