"""Pong: PPO, for about an hour of one core.

The family's settings are for 1e7 frames of 16 environments; with a twenty-fifth of that, half as many environments and
twice the learning rate take more steps on fewer frames. It
is meant to be tried within an hour: so few frames do not show that it learns.
"""

from atari_settings import PPO_OF

from rldsl import Atari, Linear, experiment, main

pong = experiment("pong").env(Atari("Pong", num_envs=8)).seeds(1, first=100).log_every(2e3)

ppo = pong.agent(PPO_OF["Pong"].with_(lr=Linear(5e-4))).frames(4e5).compute(compile="on")

if __name__ == "__main__":
    main(ppo)
