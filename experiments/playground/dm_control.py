"""The 25 tasks of DM-Control in MuJoCo Playground: PPO.

dm-control-cartpole-balance/ppo              with the settings for the task
dm-control-cartpole-balance/ppo-constant-lr  with another variant of the family's settings
"""

from playground_settings import DM_CONTROL, PPO_OF, kebab

from rldsl import Playground, experiment, log_uniform, logit_uniform, main, uniform

TARGETS = {
    "AcrobotSwingup": 220,
    "AcrobotSwingupSparse": 15,
    "BallInCup": 680,
    "CartpoleBalance": 950,
    "CartpoleBalanceSparse": 700,
    "CartpoleSwingup": 800,
    "CartpoleSwingupSparse": 425,
    "CheetahRun": 850,
    "FingerSpin": 600,
    "FingerTurnEasy": 950,
    "FingerTurnHard": 950,
    "FishSwim": 650,
    "HopperHop": 2,
    "HopperStand": 70,
    "HumanoidRun": 130,
    "HumanoidStand": 700,
    "HumanoidWalk": 500,
    "PendulumSwingup": 395,
    "PointMass": 900,
    "ReacherEasy": 950,
    "ReacherHard": 950,
    "SwimmerSwimmer6": 560,
    "WalkerRun": 560,
    "WalkerStand": 1000,
    "WalkerWalk": 960,
}

suite = []
for name, target in TARGETS.items():
    task = experiment(f"dm-control-{kebab(name)}").env(Playground(name, num_envs=2048)).seeds(4, first=100)
    task = task.frames(1e8).log_every(1e5).target(target)
    suite.append(task.agent(PPO_OF[name]))
    for variant, agent in DM_CONTROL.items():
        if agent != PPO_OF[name]:
            suite.append(task.agent(agent).named(f"{task.name}/ppo-{variant}"))

cheetah = experiment("dm-control-cheetah-run").env(Playground("CheetahRun", num_envs=2048)).frames(1e8).log_every(1e5)
ppo_search = (
    cheetah.agent(PPO_OF["CheetahRun"])
    .search({"agent.lr.start": log_uniform(3e-4, 3e-3)}, gamma=logit_uniform(0.97, 0.999), clip=uniform(0.1, 0.4))
    .asha(trials=16)
)

if __name__ == "__main__":
    main(*suite, ppo_search)
