"""The 19 locomotion tasks in MuJoCo Playground: PPO.

locomotion-go1-getup/ppo          with the settings for the task
locomotion-go1-getup/ppo-precise  with another variant of the family's settings
"""

from playground_settings import LOCOMOTION, PPO_OF, kebab

from rldsl import Playground, experiment, main

TARGETS = {
    "ApolloJoystickFlatTerrain": 15,
    "BarkourJoystick": 35,
    "BerkeleyHumanoidJoystickFlatTerrain": 20,
    "BerkeleyHumanoidJoystickRoughTerrain": 15,
    "G1JoystickFlatTerrain": 10,
    "G1JoystickRoughTerrain": 5,
    "Go1Footstand": 15,
    "Go1Getup": 5,
    "Go1Handstand": 15,
    "Go1JoystickFlatTerrain": 25,
    "Go1JoystickRoughTerrain": 20,
    "H1InplaceGaitTracking": 10,
    "H1JoystickGaitTracking": 30,
    "Op3Joystick": 20,
    "SpotFlatTerrainJoystick": 30,
    "SpotGetup": 20,
    "SpotJoystickGaitTracking": 35,
    "T1JoystickFlatTerrain": 25,
    "T1JoystickRoughTerrain": 10,
}

suite = []
for name, target in TARGETS.items():
    task = experiment(f"locomotion-{kebab(name)}").env(Playground(name, num_envs=2048)).seeds(4, first=100)
    task = task.frames(1e8).log_every(1e5).target(target)
    suite.append(task.agent(PPO_OF[name]))
    for variant, agent in LOCOMOTION.items():
        if agent != PPO_OF[name]:
            suite.append(task.agent(agent).named(f"{task.name}/ppo-{variant}"))

if __name__ == "__main__":
    main(*suite)
