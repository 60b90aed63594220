"""A random policy in each Box2D task: the score that `report` measures progress towards a target from."""

from rldsl import Box2D, Random, experiment, main

TASKS = {
    "bipedal-walker": "BipedalWalker-v3",
    "lunar-lander": "LunarLander-v3",
    "lunar-lander-continuous": "LunarLanderContinuous-v3",
}

suite = [
    experiment(name).env(Box2D(task, num_envs=16)).agent(Random()).frames(2e5).log_every(800).seeds(4, first=100)
    for name, task in TASKS.items()
]

if __name__ == "__main__":
    main(*suite)
