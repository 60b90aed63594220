"""Five tasks of DM-Control in MuJoCo Playground at a budget for a CPU: PPO with 64 environments, for 3M or 5M frames.

As in cartpole_balance.py: longer rollouts and smaller minibatches, the rest as the family has it.
"""

from playground_settings import PPO_OF, kebab

from rldsl import Playground, experiment, main

BUDGETS = {
    "CartpoleSwingup": 3e6,
    "PendulumSwingup": 3e6,
    "ReacherEasy": 3e6,
    "CheetahRun": 5e6,
    "WalkerWalk": 5e6,
}
TARGETS = {
    "CartpoleSwingup": 800,
    "PendulumSwingup": 395,
    "ReacherEasy": 950,
    "CheetahRun": 850,
    "WalkerWalk": 960,
}

suite = []
for name, frames in BUDGETS.items():
    task = experiment(kebab(name)).env(Playground(name, num_envs=64)).seeds(4, first=100)
    agent = PPO_OF[name].with_(rollout=120, minibatch=512)
    suite.append(task.agent(agent).frames(frames).log_every(frames / 1000).target(TARGETS[name]))

if __name__ == "__main__":
    main(*suite)
