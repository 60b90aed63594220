"""CartPole-v1: the random baseline."""

from rldsl import Classic, Random, experiment, main

cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).seeds(4).log_every(500).target(400)

random = cartpole.agent(Random()).frames(2e5)

if __name__ == "__main__":
    main(random)
