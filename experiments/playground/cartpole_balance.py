"""CartpoleBalance in MuJoCo Playground: PPO, a few minutes on a CPU.

An episode has 1000 steps, so with 2048 environments the first episodes would end after 2e6 frames. This budget is half
of that, with 64 environments, longer rollouts and smaller minibatches; the rest is as the family has it.
"""

from playground_settings import PPO_OF

from rldsl import Playground, experiment, main

cartpole_balance = (
    experiment("cartpole-balance")
    .env(Playground("CartpoleBalance", num_envs=64))
    .seeds(4, first=100)
    .log_every(1e3)
    .target(950)
)

ppo = cartpole_balance.agent(PPO_OF["CartpoleBalance"].with_(rollout=120, minibatch=512)).frames(1e6)

if __name__ == "__main__":
    main(ppo)
