"""A random policy in each MuJoCo task: the score that `report` measures progress towards a target from."""

from rldsl import MuJoCo, Random, experiment, main

TASKS = {
    "ant": "Ant-v5",
    "half-cheetah": "HalfCheetah-v5",
    "hopper": "Hopper-v5",
    "humanoid": "Humanoid-v5",
    "humanoid-standup": "HumanoidStandup-v5",
    "inverted-double-pendulum": "InvertedDoublePendulum-v5",
    "inverted-pendulum": "InvertedPendulum-v5",
    "pusher": "Pusher-v5",
    "reacher": "Reacher-v5",
    "swimmer": "Swimmer-v5",
    "walker2d": "Walker2d-v5",
}

suite = [
    experiment(name).env(MuJoCo(task, num_envs=16)).agent(Random()).frames(2e5).log_every(800).seeds(4, first=100)
    for name, task in TASKS.items()
]

if __name__ == "__main__":
    main(*suite)
