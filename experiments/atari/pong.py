"""Pong: PPO, for about an hour on one core.

The family's settings are for 1e7 frames and 16 environments. This budget is an eighth of that: with 8 environments an
update needs half as many frames, so there are twice as many updates.
"""

from atari_settings import PPO_OF

from rldsl import Atari, experiment, main

pong = experiment("pong").env(Atari("Pong", num_envs=8)).seeds(1, first=100).log_every(2e3)

ppo = pong.agent(PPO_OF["Pong"]).frames(1.2e6).compute(compile="on")

if __name__ == "__main__":
    main(ppo)
