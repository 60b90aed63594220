"""How far from the goal episodes end, beside the return."""

from rldsl import PPO, Gym, experiment, main

grid = experiment("grid").env(Gym("grid_world:GridWorld-v0", num_envs=8, metrics=("distance",)))
ppo = grid.agent(PPO(rollout=64, minibatch=128, lr=3e-3)).frames(3e4)

if __name__ == "__main__":
    main(ppo)
