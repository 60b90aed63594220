"""The 10 manipulation tasks in MuJoCo Playground: PPO.

manipulation-panda-pick-cube/ppo        with the settings for the task
manipulation-panda-pick-cube/ppo-panda  with another variant of the family's settings
"""

from playground_settings import MANIPULATION, PPO_OF, kebab

from rldsl import Playground, experiment, main

TARGETS = {
    "AeroCubeRotateZAxis": None,
    "AlohaHandOver": 5,
    "AlohaSinglePegInsertion": 300,
    "LeapCubeReorient": 200,
    "LeapCubeRotateZAxis": 15,
    "PandaOpenCabinet": 1250,
    "PandaPickCube": 1300,
    "PandaPickCubeCartesian": 10,
    "PandaPickCubeOrientation": 1100,
    "PandaRobotiqPushCube": 20,
}

suite = []
for name, target in TARGETS.items():
    task = experiment(f"manipulation-{kebab(name)}").env(Playground(name, num_envs=2048)).seeds(4, first=100)
    task = task.frames(1e8).log_every(1e5)
    if target is not None:
        task = task.target(target)
    suite.append(task.agent(PPO_OF[name]))
    for variant, agent in MANIPULATION.items():
        if agent != PPO_OF[name]:
            suite.append(task.agent(agent).named(f"{task.name}/ppo-{variant}"))

if __name__ == "__main__":
    main(*suite)
