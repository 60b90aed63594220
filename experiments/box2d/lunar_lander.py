"""LunarLander-v3: PPO, A2C, DQN, double DQN with prioritized replay, SAC and CrossQ.

The settings of PPO and of prioritized replay were chosen on seeds 0 to 3; the benchmark has seeds of its own.
"""

from box2d_settings import A2C_OF, CROSSQ_OF, DQN_OF, PPO_OF, SAC_OF

from rldsl import Box2D, Prioritized, experiment, log_uniform, logit_uniform, main, uniform

lunar_lander = (
    experiment("lunar-lander")
    .env(Box2D("LunarLander-v3", num_envs=8))
    .seeds(4, first=100)
    .log_every(1e3)
    .frames(3e5)
    .target(200)
)

ppo = lunar_lander.agent(PPO_OF["LunarLander-v3"])
a2c = lunar_lander.agent(A2C_OF["LunarLander-v3"])
dqn = lunar_lander.agent(DQN_OF["LunarLander-v3"])
ddqn_per = (
    lunar_lander.agent(DQN_OF["LunarLander-v3"].with_(prioritized=Prioritized(beta=0.0)))
    .named("lunar-lander/ddqn-per")
    .target(265)
)
sac = lunar_lander.agent(SAC_OF["LunarLander-v3"])
crossq = lunar_lander.agent(CROSSQ_OF["LunarLander-v3"])
a2c_search = a2c.search(
    {"agent.lr.start": log_uniform(3e-4, 3e-3)},
    gamma=logit_uniform(0.98, 0.999),
    lam=uniform(0.9, 1.0),
    entropy=log_uniform(1e-5, 1e-2),
).asha(trials=32)

if __name__ == "__main__":
    main(ppo, a2c, dqn, ddqn_per, sac, crossq, a2c_search)
