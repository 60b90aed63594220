"""Breakout: PPO, for about an hour on one core, as in pong.py."""

from atari_settings import PPO_OF

from rldsl import Atari, experiment, main

breakout = experiment("breakout").env(Atari("Breakout", num_envs=8)).seeds(1, first=100).log_every(2e3)

ppo = breakout.agent(PPO_OF["Breakout"]).frames(1.2e6).compute(compile="on")

if __name__ == "__main__":
    main(ppo)
