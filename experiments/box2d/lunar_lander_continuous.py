"""LunarLanderContinuous-v3: PPO, A2C, SAC and CrossQ."""

from box2d_settings import A2C_OF, CROSSQ_OF, PPO_OF, SAC_OF

from rldsl import Box2D, experiment, log_uniform, logit_uniform, main, uniform

lunar_lander = (
    experiment("lunar-lander-continuous")
    .env(Box2D("LunarLanderContinuous-v3", num_envs=8))
    .seeds(4, first=100)
    .log_every(1e3)
    .frames(3e5)
    .target(200)
)

ppo = lunar_lander.agent(PPO_OF["LunarLanderContinuous-v3"])
a2c = lunar_lander.agent(A2C_OF["LunarLanderContinuous-v3"])
sac = lunar_lander.agent(SAC_OF["LunarLanderContinuous-v3"])
crossq = lunar_lander.agent(CROSSQ_OF["LunarLanderContinuous-v3"])
ppo_search = ppo.search(
    {"agent.lr.start": log_uniform(3e-4, 2e-3)},
    gamma=logit_uniform(0.98, 0.9995),
    lam=uniform(0.9, 0.99),
    entropy=log_uniform(1e-5, 1e-2),
    log_std=uniform(-1.0, 0.0),
).asha(trials=24, seeds=(2, 4, 8))

if __name__ == "__main__":
    main(ppo, a2c, sac, crossq, ppo_search)
