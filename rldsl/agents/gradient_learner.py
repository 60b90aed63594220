"""Base class of agents that train a network by gradient descent: parameters, update, metrics and checkpoints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.base import AgentContext, Learner
from rldsl.agents.coefficients import Coefficients
from rldsl.agents.normalization import Normalization
from rldsl.agents.update import Batch, Update
from rldsl.compile import Compilation
from rldsl.maths.streams import restore_stream, stream, stream_state
from rldsl.nets.acting import make_actor
from rldsl.nets.layout import Params
from rldsl.nets.network import Network
from rldsl.spec.base import is_ours, nodes
from rldsl.spec.net import Net
from rldsl.spec.optimizer import Optimizer
from rldsl.spec.schedule import Schedule

STREAMS = ("init", "act", "shuffle", "replay", "noise")
Metrics = Tensor | np.ndarray


class GradientSpec(Protocol):
    """The fields that the spec of such an agent has."""

    @property
    def gamma(self) -> float: ...
    @property
    def lr(self) -> float | Schedule: ...
    @property
    def max_grad_norm(self) -> float | None: ...
    @property
    def net(self) -> Net: ...
    @property
    def optimizer(self) -> Optimizer: ...


S = TypeVar("S", bound=GradientSpec)


class GradientLearner(Learner, Generic[S]):
    """Subclasses define the network and the loss. All members are trained at once, each with its own coefficients."""

    names: ClassVar[tuple[str, ...]]
    """The metrics that the loss returns, in order. The gradient norm is added to them."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.spec = cast(S, context.specs[0])
        self.device = torch.device(context.device)
        self.members, self.num_envs = context.members, context.num_envs
        self.streams = {name: [stream(seed, name) for seed in context.seeds] for name in STREAMS}
        self.network = self.build_network()
        self.recurrent = self.network.state_size > 0
        flat = self.initial_parameters().to(self.device)
        compilation = Compilation.choose(context.compute, self.gradient_steps(), self.recurrent)
        self.update = Update(
            self.network.layout,
            flat,
            self.spec.optimizer,
            self.loss,
            compilation,
            self.cache_key("loss"),
            prepare=self.prepare_batch,
            steps_per_call=self.steps_per_call() if compilation.enabled else 1,
        )
        self.actor = make_actor(self.network, flat, self.num_envs)
        self.coefficients = Coefficients(context.specs, context.frames, self.device)
        self.normalization = Normalization(self.spec, context)
        self._metrics = np.full((self.members, len(self.columns)), np.nan, np.float32)

    def initial_parameters(self) -> Tensor:
        """The network's initial parameters `[M, P]`: each member's from its own RNG."""
        return self.network.init(self.streams["init"])

    @abstractmethod
    def build_network(self) -> Network:
        """The network of one member."""

    @abstractmethod
    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """The loss `[M]` of a batch, and the metrics of `names`, `[M, K]`."""

    @abstractmethod
    def gradient_steps(self) -> int:
        """The number of gradient steps in the whole session."""

    def steps_per_call(self) -> int:
        """How many gradient steps a single call of the update may take, if it is compiled."""
        return 1

    def prepare_batch(self, batch: Batch, coefficients: Batch) -> Batch:
        """The batch that the loss is given, from the batch that `update` is called with.

        Called once for all steps of a call: what does not depend on the parameters is computed for all of them.
        """
        return batch

    def cache_key(self, loss: str) -> str | None:
        """Everything that the code of one of the agent's losses depends on, under which its compiled step is cached.

        None if code outside of this package takes part in it, because the key would not show when that changes.
        """
        context = self.context
        if not all(is_ours(type(part)) for part in [self, *(node for spec in context.specs for node in nodes(spec))]):
            return None
        specs_json = [spec.model_dump_json() for spec in context.specs]
        return "\n".join([type(self).__qualname__, loss, repr(context.spaces), str(context.num_envs), *specs_json])

    def rows_to_members(self, rows: np.ndarray) -> np.ndarray:
        """`[rows, ...]` as `[M, N, ...]`."""
        return rows.reshape(self.members, self.num_envs, *rows.shape[1:])

    def learn(self, frame: int, batch: Batch, coefficients: Batch) -> Tensor:
        """One gradient step, with the learning rate of this frame."""
        return self.update(self.learning_rate(frame), self.max_grad_norm(frame), coefficients, batch)

    def learning_rate(self, frame: int) -> Tensor:
        """For each member `[M]`, or for each parameter `[M, P]`."""
        return self.coefficients.tensor("lr", frame)

    def max_grad_norm(self, frame: int) -> Tensor:
        """The gradient norm `[M]` above which gradients are clipped; infinite where the spec has none."""
        return self.coefficients.tensor("max_grad_norm", frame, default=float("inf"))

    def record_metrics(self, frame: int, metrics: Metrics, **more: Metrics) -> None:
        """Keeps the metrics `[M, K]` of an iteration, and others `[M]` by name, for the next log point."""
        by_name = dict(zip((*self.names, "grad_norm"), as_array(metrics).T, strict=True))
        by_name |= {name: as_array(values) for name, values in more.items()}
        by_name["lr"] = np.array(self.coefficients.floats("lr", frame))
        self._metrics = np.stack([by_name[name] for name in self.columns], 1).astype(np.float32, copy=False)

    def metrics(self) -> Mapping[str, np.ndarray]:
        return dict(zip(self.columns, self._metrics.T, strict=True))

    def notes(self) -> dict[str, Any]:
        return {**self.update.compilation.notes(), "device": str(self.device)}

    def diverged(self) -> np.ndarray:
        return ~torch.isfinite(self.update.flat.sum(1)).cpu().numpy()

    def reset_diverged(self, member: int) -> None:
        for tensor in (self.update.flat, *self.update.state.values()):
            tensor[member] = 0.0

    def policy_state(self, member: int) -> dict[str, Any]:
        flat = self.update.save(member)["flat"]
        return {"update": {"flat": flat}, "normalization": self.normalization.save(member)}

    def restore_policy(self, member: int, state: Mapping[str, Any]) -> None:
        self.update.load(member, {"flat": state["update"]["flat"]})
        self.normalization.load(member, state["normalization"])

    def state(self, member: int) -> dict[str, Any]:
        return {
            "update": self.update.save(member),
            "normalization": self.normalization.save(member),
            "streams": {name: stream_state(streams[member]) for name, streams in self.streams.items()},
            "actor": self.actor.state[member].copy(),
            "metrics": self._metrics[member].copy(),
        }

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        self.update.load(member, state["update"])
        self.normalization.load(member, state["normalization"])
        for name, streams in self.streams.items():
            restore_stream(streams[member], state["streams"][name])
        self.actor.state = self.actor.state.copy()
        self.actor.state[member] = state["actor"]
        self._metrics[member] = state["metrics"]


def as_array(metrics: Metrics) -> np.ndarray:
    return metrics.cpu().numpy() if isinstance(metrics, Tensor) else metrics
