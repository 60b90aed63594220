"""What the off-policy algorithms share: steps into a replay buffer, each followed by the updates that it pays for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.contract import AgentContext, Policy, World
from rldsl.agents.gradient_learner import GradientLearner, as_array
from rldsl.agents.policies import ActionSpace
from rldsl.maths.replay_size import ReplayShape
from rldsl.maths.streams import stream
from rldsl.memory.replay import Replay
from rldsl.nets.acting import NumpyPolicy, make_actor
from rldsl.nets.sampling import greedy
from rldsl.spec.off_policy import OffPolicy
from rldsl.store.append_only_ring import AppendOnlyRing

S = TypeVar("S", bound=OffPolicy)
Batch = dict[str, Tensor]

STEPS = 32
"""Vector steps of one iteration: few enough for a timely checkpoint, enough to hide what an iteration costs."""


class OffPolicyAgent(GradientLearner[S]):
    """A subclass says how actions are chosen and how a batch is learned from."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.actions = ActionSpace(context.spaces.action, squash=True)
        self.replay = self._make_replay()
        self.updates = 0
        self.begun = False
        """Whether the replay has the present observations."""
        self._said: tuple[int, Tensor] | None = None
        self._unbinds: dict[str, tuple[np.ndarray, Sequence[Tensor]]] = {}
        self._drawn: tuple[list[np.ndarray], list[Batch]] = [], []
        """What was drawn last, and the batches on its memory."""

    def gradient_steps(self) -> int:
        return self.spec.updates(self.context.frames)

    def iterate(self, world: World) -> None:
        self.actor.refresh(self.update.flat)
        noise = np.stack([self.noise(random, STEPS, self.num_envs) for random in self.streams["act"]], 1)
        frames = range(world.frame, world.frame + STEPS * self.num_envs, self.num_envs)
        for chance in self.chances(noise, frames):
            self._step(world, chance)
            self._learn(world.frame)
            if world.exhausted:
                return

    def _step(self, world: World, chance: Any) -> None:
        """Acts in all rows, at random until the start, and remembers what came of it."""
        if not self.begun:
            self.replay.begin(world.observation)
            self.begun = True
        if world.frame < self.spec.learning_starts:
            action = self._at_random()
        else:
            seen = self.normalization.look(self.by_member(world.observation))
            action = self.choose(self.actor(seen), chance)
        self.replay.write(action, world.step(action.reshape(-1, *self.actions.shape)))

    def _learn(self, frame: int) -> None:
        due, together = self.spec.updates(frame) - self.updates, self.update.together
        if due < together:
            return
        rates = self.learning_rate(frame), self.max_grad_norm(frame)
        for batch in self._batches(due // together, frame):
            self.updates += together
            self._said = frame, self.improve(frame, rates, batch)
        self.actor.refresh(self.update.flat)

    @abstractmethod
    def noise(self, random: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        """What is needed of chance for so many steps of one member, `[T, N, ...]`."""

    def chances(self, noise: np.ndarray, frames: Sequence[int]) -> Iterable[Any]:
        """What `choose` takes at each of these frames, from noise `[T, M, N, ...]`."""
        return noise

    @abstractmethod
    def choose(self, said: NumpyPolicy, chance: Any) -> np.ndarray:
        """Actions `[M, N, ...]`, as the environment takes them, from what the actor says and one of `chances`."""

    @abstractmethod
    def improve(self, frame: int, rates: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        """A gradient step on a batch `[M, B, ...]`, or several `together` on as many batches.

        Returns what the last one gave, as `metrics_of` reads it.
        """

    def _batches(self, calls: int, frame: int) -> Sequence[Batch]:
        """What `improve` is called with. All batches of one step are drawn at once."""
        drawn = self.draw(calls * self.update.together, frame)
        arrays, batches = self._drawn
        if len(arrays) != len(drawn) or not all(map(is_, arrays, drawn.values())) or self.device.type != "cpu":
            tensors = [self._unbound(name, array) for name, array in drawn.items()]
            batches = [dict(zip(drawn, step, strict=True)) for step in zip(*tensors, strict=True)]
            self._drawn = list(drawn.values()), batches
        return batches

    def _unbound(self, name: str, array: np.ndarray) -> Sequence[Tensor]:
        """A tensor for each call; of memory that is drawn into again and again, a CPU's are made once."""
        last, tensors = self._unbinds.get(name, (None, ()))
        if last is not array or not tensors[0].is_cpu:
            batches = torch.from_numpy(array).to(self.device)
            together = self.update.together
            tensors = batches.unbind(0) if together == 1 else batches.unflatten(0, (-1, together)).unbind(0)
            self._unbinds[name] = array, tensors
        return tensors

    def draw(self, count: int, frame: int) -> dict[str, np.ndarray]:
        """What so many batches are made of, `[count, M, B, ...]`."""
        drawn = self.replay.sample(
            count, self.spec.batch, self.streams["replay"], self.beta(frame), self.spec.include_newest
        )
        if self.replay.priorities is None:
            del drawn["index"]
        return drawn

    def beta(self, frame: int) -> np.ndarray | None:
        """The exponent of prioritized replay's weights, `[M]`, where replay is prioritized."""
        return None

    def _at_random(self) -> np.ndarray:
        shape = (self.num_envs, *self.actions.shape)
        if self.actions.discrete:
            return np.stack([random.integers(self.actions.size, size=shape) for random in self.streams["act"]])
        return np.stack([random.uniform(-1.0, 1.0, shape).astype(np.float32) for random in self.streams["act"]])

    def _make_replay(self) -> Replay:
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
        gamma = [one.gamma for one in self.context.specs]  # type: ignore[attr-defined]
        return Replay(shape, gamma, [spec.n_step] * self.members, alpha)

    def metrics(self) -> Mapping[str, np.ndarray]:
        self._settle()
        return super().metrics()

    def _settle(self) -> None:
        """Metrics are read only where they are asked for: once in many updates."""
        if self._said is not None:
            frame, metrics = self._said
            self.record_metrics(frame, self.metrics_of(metrics), **self.more(frame))
            self._said = None

    def metrics_of(self, said: Tensor) -> np.ndarray:
        """The metrics of `names` and the gradient's norm, from what an update gave: there may be more between them."""
        metrics = as_array(said)
        return np.concatenate((metrics[:, : len(self.names)], metrics[:, -1:]), 1)

    def more(self, frame: int) -> dict[str, np.ndarray]:
        """Metrics beside those of the loss, `[M]` each."""
        return {}

    def forget_episodes(self) -> None:
        self.begun = False

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        actor = make_actor(self.network, self.update.flat.clone(), num_envs)
        streams = [stream(seed, "evaluate") for seed in seeds]

        def act(observation: np.ndarray, starts: np.ndarray) -> np.ndarray:
            said = actor(self.normalization.look(observation))
            if deterministic:
                return self.actions.to_env(greedy(said))
            noise = np.stack([self.noise(random, 1, num_envs) for random in streams], 1)
            return self.choose(said, *self.chances(noise, [self.context.frames]))

        return act

    def state(self, member: int) -> dict[str, Any]:
        self._settle()
        return super().state(member) | {"replay": self.replay.state(member), "updates": self.updates}

    def growing(self, member: int) -> AppendOnlyRing:
        return self.replay.steps(member)

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.replay.restore(member, state["replay"])
        self.updates = state["updates"]
        self.begun = self.replay.written > 0
