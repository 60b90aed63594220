"""A random policy in the Playground tasks that have a budget for a CPU.

It gives the score that `report` measures progress towards a target from.
"""

from playground_settings import kebab

from rldsl import Playground, Random, experiment, main

TASKS = ("CartpoleBalance", "CartpoleSwingup", "PendulumSwingup", "ReacherEasy", "CheetahRun", "WalkerWalk")

suite = [
    experiment(kebab(task))
    .env(Playground(task, num_envs=64))
    .agent(Random())
    .frames(2e5)
    .log_every(640)
    .seeds(4, first=100)
    for task in TASKS
]

if __name__ == "__main__":
    main(*suite)
