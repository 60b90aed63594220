"""Hopper-v5: PPO, SAC and CrossQ."""

from mujoco_settings import CROSSQ_1M_OF, CROSSQ_OF, PPO_OF, SAC_1M_OF, SAC_OF

from rldsl import MuJoCo, experiment, log_uniform, logit_uniform, main, uniform

hopper = experiment("hopper").env(MuJoCo("Hopper-v5", num_envs=16)).seeds(4, first=100).log_every(1e4).target(2000)

ppo = hopper.agent(PPO_OF["Hopper-v5"]).frames(4e6)
sac = hopper.agent(SAC_OF["Hopper-v5"]).frames(3e6)
crossq = hopper.agent(CROSSQ_OF["Hopper-v5"]).frames(3e6)
ppo_search = ppo.search(
    {"agent.lr.start": log_uniform(1e-4, 1e-3)},
    gamma=logit_uniform(0.98, 0.999),
    lam=uniform(0.9, 0.98),
    entropy=log_uniform(1e-5, 1e-2),
    log_std=uniform(-1.0, 0.0),
).asha(trials=16, seeds=(1, 2, 4))

hopper_1m = hopper.env(MuJoCo("Hopper-v5", num_envs=4)).frames(1e6).log_every(1e3)
sac_1m = hopper_1m.agent(SAC_1M_OF["Hopper-v5"]).named("hopper/sac-1m").target(2700)
crossq_1m = hopper_1m.agent(CROSSQ_1M_OF["Hopper-v5"]).named("hopper/crossq-1m").target(2400)

if __name__ == "__main__":
    main(ppo, sac, crossq, ppo_search, sac_1m, crossq_1m)
