"""A random policy in Acrobot and Pendulum: the score that `report` measures progress towards a target from.

CartPole's is in cartpole.py.
"""

from rldsl import Classic, Random, experiment, main

suite = [
    experiment(name).env(Classic(task, num_envs=16)).agent(Random()).frames(2e5).log_every(800).seeds(4, first=100)
    for name, task in {"acrobot": "Acrobot-v1", "pendulum": "Pendulum-v1"}.items()
]

if __name__ == "__main__":
    main(*suite)
