"""An agent of your own in one file: hill climbing on CartPole with a linear policy."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from rldsl import Agent, Classic, experiment, main
from rldsl.extend import AgentContext, Count, Learner, PerMember, Policy, Positive, World


class HillClimbing(Agent, frozen=True):
    """The spec: what an experiment declares, a plan shows and an id is a hash of."""

    kind: Literal["hill_climbing"] = "hill_climbing"
    implementation: ClassVar[str] = "hill_climbing:HillClimber"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})

    noise: Annotated[Positive, PerMember] = Field(default=0.3, description="Standard deviation of a change")
    steps: Count = Field(default=250, description="Steps in each environment to evaluate a change")


class HillClimber(Learner):
    """The implementation, for all members of a pack at once: the first axis of every array."""

    columns = ("best",)

    def __init__(self, context: AgentContext) -> None:
        self.shape = (context.members, context.num_envs)
        self.specs = context.specs
        self.rngs = [np.random.default_rng(seed) for seed in context.seeds]
        self.weights = np.zeros((context.members, *context.spaces.observation_shape, context.spaces.action.n))
        self.best = np.full(context.members, -np.inf)

    def iterate(self, world: World) -> None:
        shape = self.weights.shape[1:]
        noise = [rng.normal(0, spec.noise, shape) for rng, spec in zip(self.rngs, self.specs, strict=True)]
        candidate = self.weights + np.stack(noise)
        total, episodes = np.zeros(self.shape), np.ones(self.shape)
        for _ in range(self.specs[0].steps):
            step = world.step(act(candidate, world.observation.reshape(*self.shape, -1)).ravel())
            total += step.reward.reshape(self.shape)
            episodes += (step.terminated | step.truncated).reshape(self.shape)
            if world.exhausted:
                return
        score = total.sum(1) / episodes.sum(1)
        better = score > self.best
        self.weights[better], self.best[better] = candidate[better], score[better]

    def metrics(self) -> Mapping[str, np.ndarray]:
        return {"best": self.best}

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        weights = self.weights.copy()
        return lambda observation, starts: act(weights, observation)

    def state(self, member: int) -> dict[str, Any]:
        rng = self.rngs[member].bit_generator.state
        return {"weights": self.weights[member].copy(), "best": self.best[[member]], "rng": rng}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        self.weights[member], self.best[[member]] = state["weights"], state["best"]
        self.rngs[member].bit_generator.state = state["rng"]


def act(weights: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """The action `[M, N]` with the highest score at each observation `[M, N, D]`."""
    return (observation @ weights).argmax(-1)


climbing = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).seeds(4).agent(HillClimbing()).frames(1e5)

if __name__ == "__main__":
    main(climbing)
