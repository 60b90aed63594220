"""BipedalWalker-v3: PPO for 3M frames, SAC for 500k. The task counts as solved at 300."""

from box2d_settings import PPO_OF, SAC_OF

from rldsl import Box2D, experiment, main

walker = experiment("bipedal-walker").seeds(4, first=100).target(300)

ppo = walker.env(Box2D("BipedalWalker-v3", num_envs=16)).agent(PPO_OF["BipedalWalker-v3"]).frames(3e6).log_every(1e4)
sac = walker.env(Box2D("BipedalWalker-v3", num_envs=8)).agent(SAC_OF["BipedalWalker-v3"]).frames(5e5).log_every(1e3)

if __name__ == "__main__":
    main(ppo, sac)
