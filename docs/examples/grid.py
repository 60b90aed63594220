"""PPO in a Gymnasium environment of your own, which grid_world.py beside this file registers."""

from rldsl import PPO, Gym, Wrapper, experiment, main

hurry = Wrapper("grid_world:Hurry", kwargs={"cost": 0.02})
grid = experiment("grid").env(Gym("grid_world:GridWorld-v0", num_envs=8, kwargs={"size": 4}, wrappers=(hurry,)))

ppo = grid.agent(PPO(rollout=64, minibatch=128, lr=3e-3)).frames(3e4).seeds(2).target(0.9)

if __name__ == "__main__":
    main(ppo)
