"""Hill climbing on CartPole, an agent of your own in one file: nudge a linear policy, keep what is better."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from rldsl import Agent, Classic, experiment, main
from rldsl.agents.base import AgentContext, Learner, Policy, World
from rldsl.spec.base import Count, PerMember, Positive


class HillClimbing(Agent, frozen=True):
    """The settings: what a person writes, what a plan shows, what identity is made of."""

    kind: Literal["hill_climbing"] = "hill_climbing"
    implementation: ClassVar[str] = "hill_climbing:HillClimber"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})

    nudge: Annotated[Positive, PerMember] = Field(default=0.3, description="Size of a change")
    steps: Count = Field(default=250, description="Steps of each environment that judge a change")


class HillClimber(Learner):
    """The work, for all members of a pack at once: the first axis of every array is theirs."""

    columns = ("best",)

    def __init__(self, context: AgentContext) -> None:
        self.shape = (context.members, context.num_envs)
        self.specs = context.specs
        self.random = [np.random.default_rng(seed) for seed in context.seeds]
        self.weights = np.zeros((context.members, *context.spaces.observation_shape, context.spaces.action.n))
        self.best = np.full(context.members, -np.inf)

    def iterate(self, world: World) -> None:
        nudges = [
            r.normal(0, one.nudge, self.weights.shape[1:]) for r, one in zip(self.random, self.specs, strict=True)
        ]
        tried = self.weights + np.stack(nudges)
        total, episodes = np.zeros(self.shape), np.ones(self.shape)
        for _ in range(self.specs[0].steps):
            step = world.step(act(tried, world.observation.reshape(*self.shape, -1)).ravel())
            total += step.reward.reshape(self.shape)
            episodes += (step.terminated | step.truncated).reshape(self.shape)
            if world.exhausted:
                return
        score = total.sum(1) / episodes.sum(1)
        better = score > self.best
        self.weights[better], self.best[better] = tried[better], score[better]

    def metrics(self) -> Mapping[str, np.ndarray]:
        return {"best": self.best}

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        weights = self.weights.copy()
        return lambda observation, starts: act(weights, observation)

    def state(self, member: int) -> dict[str, Any]:
        random = self.random[member].bit_generator.state
        return {"weights": self.weights[member].copy(), "best": self.best[[member]], "random": random}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        self.weights[member], self.best[[member]] = state["weights"], state["best"]
        self.random[member].bit_generator.state = state["random"]


def act(weights: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """The action `[M, N]` with the highest score at each observation `[M, N, D]`."""
    return (observation @ weights).argmax(-1)


climbing = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).seeds(4).agent(HillClimbing()).frames(1e5)

if __name__ == "__main__":
    main(climbing)
