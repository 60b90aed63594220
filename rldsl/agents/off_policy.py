"""Base class of the off-policy algorithms: vector steps into a replay buffer, each followed by gradient steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from rldsl.agents.action_space import ActionSpace
from rldsl.agents.base import AgentContext, Policy, World
from rldsl.agents.gradient_learner import GradientLearner, as_array
from rldsl.agents.update import Batch
from rldsl.maths.streams import stream
from rldsl.memory.minibatches import Minibatches
from rldsl.memory.replay import ReplayBuffer
from rldsl.memory.replay_size import ReplayShape
from rldsl.nets.acting import NumpyPolicy, make_actor
from rldsl.nets.sampling import greedy
from rldsl.spec.off_policy import OffPolicy
from rldsl.store.append_only_ring import AppendOnlyRing

S = TypeVar("S", bound=OffPolicy)

STEPS_PER_ITERATION = 32
"""Vector steps: few enough for timely checkpoints, enough to hide the overhead of an iteration."""


class OffPolicyAgent(GradientLearner[S]):
    """Acts, stores transitions and learns from minibatches of them. A subclass defines exploration and the update."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.actions = ActionSpace(context.spaces.action, squash=True)
        self.replay = self._make_replay_buffer()
        self.updates = 0
        """Gradient steps so far."""
        self.replay_begun = False
        """Whether the replay buffer holds the current observations."""
        self._minibatches: dict[int, Minibatches] = {}
        self._unread_metrics: tuple[int, Tensor] | None = None
        """Frame and metrics of the last gradient step, until `metrics` or `state` reads them."""

    def gradient_steps(self) -> int:
        return self.spec.updates(self.context.frames)

    def iterate(self, world: World) -> None:
        self.actor.refresh(self.update.flat)
        steps, rngs = STEPS_PER_ITERATION, self.streams["act"]
        noise = np.stack([self.draw_noise(rng, steps, self.num_envs) for rng in rngs], 1)
        frames = range(world.frame, world.frame + steps * self.num_envs, self.num_envs)
        for exploration in self.exploration(noise, frames):
            self._act(world, exploration)
            self._learn(world.frame)
            if world.exhausted:
                return

    def learning(self) -> bool:
        return self.updates > 0

    def _act(self, world: World, exploration: Any) -> None:
        """One vector step, uniformly at random before `learning_starts`, into the replay buffer."""
        if not self.replay_begun:
            self.replay.begin(world.observation)
            self.replay_begun = True
        if world.frame < self.spec.learning_starts:
            action = self._random_action()
        else:
            observation = self.normalization.normalize(self.rows_to_members(world.observation))
            action = self.select_action(self.actor(observation), exploration)
        self.replay.write(action, world.step(action.reshape(-1, *self.actions.shape)))

    def _learn(self, frame: int) -> None:
        """The gradient steps that are due after `frame` frames."""
        steps_per_call = self.update.steps_per_call
        calls = (self.spec.updates(frame) - self.updates) // steps_per_call
        if calls < 1:
            return
        lr, max_grad_norm = self.learning_rate(frame), self.max_grad_norm(frame)
        for batch in self._sample(calls, frame):
            self.updates += steps_per_call
            self._unread_metrics = frame, self.train_on_batch(frame, lr, max_grad_norm, batch)
        self.actor.refresh(self.update.flat)

    @abstractmethod
    def draw_noise(self, rng: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        """Exploration noise of one member, `[T, N, ...]`."""

    def exploration(self, noise: np.ndarray, frames: Sequence[int]) -> Iterable[Any]:
        """What `select_action` takes at each of these frames, from noise `[T, M, N, ...]`."""
        return noise

    @abstractmethod
    def select_action(self, policy_output: NumpyPolicy, exploration: Any) -> np.ndarray:
        """Actions `[M, N, ...]` for the environment, from the actor's output and an item of `exploration`."""

    @abstractmethod
    def train_on_batch(self, frame: int, lr: Tensor, max_grad_norm: Tensor, batch: Batch) -> Tensor:
        """A gradient step on a minibatch `[M, B, ...]`, or several on as many minibatches, `[steps, M, B, ...]`.

        Returns the metrics of the last step, as `loss_metrics` reads them.
        """

    def _sample(self, calls: int, frame: int) -> list[dict[str, Tensor]]:
        """Minibatches for `calls` calls of the update, all sampled at once."""
        count = calls * self.update.steps_per_call
        if count not in self._minibatches:
            array_only = () if self.replay.priorities else ("index",)
            arrays = self.allocate_batch(count)
            self._minibatches[count] = Minibatches(arrays, self.update.steps_per_call, self.device, array_only)
        minibatches = self._minibatches[count]
        self.fill_batch(minibatches.arrays, count, frame)
        return minibatches.tensors()

    def allocate_batch(self, count: int) -> dict[str, np.ndarray]:
        """Arrays `[count, M, B, ...]` for `fill_batch`."""
        return self.replay.allocate(count, self.spec.batch)

    def fill_batch(self, batch: dict[str, np.ndarray], count: int, frame: int) -> None:
        """Sample minibatches into `batch`."""
        rngs, beta = self.streams["replay"], self.importance_exponent(frame)
        self.replay.sample(count, self.spec.batch, rngs, beta, self.spec.include_newest, out=batch)

    def importance_exponent(self, frame: int) -> np.ndarray | None:
        """The importance-sampling exponent beta `[M]` of prioritized replay; None without it."""
        return None

    def _random_action(self) -> np.ndarray:
        shape, rngs = (self.num_envs, *self.actions.shape), self.streams["act"]
        if self.actions.discrete:
            return np.stack([rng.integers(self.actions.size, size=shape) for rng in rngs])
        return np.stack([rng.uniform(-1.0, 1.0, shape).astype(np.float32) for rng in rngs])

    def _make_replay_buffer(self) -> ReplayBuffer:
        spaces, spec = self.context.spaces, self.spec
        pixels = spaces.observation_dtype == np.uint8
        prioritized = getattr(spec, "prioritized", None)
        shape = ReplayShape(
            capacity=spec.buffer,
            members=self.members,
            num_envs=self.num_envs,
            observation=spaces.observation_shape,
            dtype="uint8" if pixels else "float32",
            action=self.actions.shape,
            stack=spaces.stack,
            prioritized=prioritized is not None,
        )
        alpha = [prioritized.alpha] * self.members if prioritized else None
        gamma = [member.gamma for member in self.context.specs]  # type: ignore[attr-defined]
        return ReplayBuffer(shape, gamma, [spec.n_step] * self.members, alpha)

    def metrics(self) -> Mapping[str, np.ndarray]:
        self._read_metrics()
        return super().metrics()

    def _read_metrics(self) -> None:
        """Record the metrics of the last gradient step. Only when needed: reading them after every step is slow."""
        if self._unread_metrics is not None:
            frame, metrics = self._unread_metrics
            self.record_metrics(frame, self.loss_metrics(metrics), **self.extra_metrics(frame))
            self._unread_metrics = None

    def loss_metrics(self, output: Tensor) -> np.ndarray:
        """The metrics `names` and the gradient norm `[M, K + 1]` from an update's output, which may have more columns
        between them."""
        metrics = as_array(output)
        return np.concatenate((metrics[:, : len(self.names)], metrics[:, -1:]), 1)

    def extra_metrics(self, frame: int) -> dict[str, np.ndarray]:
        """Metrics in addition to those of the loss, `[M]` each."""
        return {}

    def forget_episodes(self) -> None:
        self.replay_begun = False

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        actor = make_actor(self.network, self.update.flat.clone(), num_envs)
        rngs = [stream(seed, "evaluate") for seed in seeds]

        def act(observation: np.ndarray, starts: np.ndarray) -> np.ndarray:
            policy_output = actor(self.normalization.normalize(observation))
            if deterministic:
                return self.actions.to_env(greedy(policy_output))
            noise = np.stack([self.draw_noise(rng, 1, num_envs) for rng in rngs], 1)
            return self.select_action(policy_output, *self.exploration(noise, [self.context.frames]))

        return act

    def state(self, member: int) -> dict[str, Any]:
        self._read_metrics()
        return super().state(member) | {"replay": self.replay.state(member), "updates": self.updates}

    def append_only_ring(self, member: int) -> AppendOnlyRing:
        return self.replay.steps(member)

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.replay.restore(member, state["replay"])
        self.updates = state["updates"]
        self.replay_begun = self.replay.written > 0
