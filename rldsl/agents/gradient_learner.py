"""What every agent with a network has: parameters, a step of the optimizer, metrics, and a state that can be saved."""

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
from rldsl.agents.update import Batch, Update, choose_compiled
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
    """The fields that such an agent's spec has."""

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
    """A subclass gives the network and the loss; the members' parameters move together, each by its own rates."""

    names: ClassVar[tuple[str, ...]]
    """The metrics that the loss returns, in order; the gradient's norm comes behind them."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.spec = cast(S, context.specs[0])
        self.device = torch.device(context.compute.device)
        self.members, self.num_envs = context.members, context.num_envs
        self.streams = {name: [stream(seed, name) for seed in context.seeds] for name in STREAMS}
        self.network = self.build_network()
        self.recurrent = self.network.state_size > 0
        flat = self.network.init(self.streams["init"]).to(self.device)
        compiled = choose_compiled(context.compute, self.gradient_steps(), self.recurrent)
        self.update = Update(
            self.network.layout,
            flat,
            self.spec.optimizer,
            self.loss,
            compiled,
            self.origin("loss"),
            before=self.before_steps,
            together=self.steps_together() if compiled else 1,
        )
        self.actor = make_actor(self.network, flat, self.num_envs)
        self.coefficients = Coefficients(context.specs, context.frames, self.device)
        self.normalization = Normalization(self.spec, context)
        self._metrics = np.full((self.members, len(self.columns)), np.nan, np.float32)

    @abstractmethod
    def build_network(self) -> Network:
        """The network of one member."""

    @abstractmethod
    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """The loss `[M]` of a batch, and metrics `[M, K]` about it."""

    @abstractmethod
    def gradient_steps(self) -> int:
        """Gradient steps of the whole session."""

    def steps_together(self) -> int:
        """How many steps of the optimizer may be one call."""
        return 1

    def before_steps(self, batch: Batch, coefficients: Batch) -> Batch:
        """What the loss takes as its batch, of what `update` is called with: for all steps of a call at once."""
        return batch

    def origin(self, loss: str) -> str | None:
        """All that one of the agent's losses depends on; none where code from outside the package has a part in it."""
        context = self.context
        if not all(is_ours(type(one)) for one in [self, *(node for spec in context.specs for node in nodes(spec))]):
            return None
        told = [spec.model_dump_json() for spec in context.specs]
        return "\n".join([type(self).__qualname__, loss, repr(context.spaces), str(context.num_envs), *told])

    def by_member(self, rows: np.ndarray) -> np.ndarray:
        """`[rows, ...]` as `[M, N, ...]`."""
        return rows.reshape(self.members, self.num_envs, *rows.shape[1:])

    def learn(self, frame: int, batch: Batch, coefficients: Batch) -> Tensor:
        """One step of the optimizer at the rates of this frame."""
        return self.update(*self.rates(frame), coefficients, batch)

    def rates(self, frame: int) -> tuple[Tensor, Tensor]:
        """Learning rate, and the bound `[M]` on the gradient's norm."""
        return self.learning_rate(frame), self.coefficients.one("max_grad_norm", frame, default=float("inf"))

    def learning_rate(self, frame: int) -> Tensor:
        """Of each member `[M]`, or of each parameter `[M, P]`."""
        return self.coefficients.one("lr", frame)

    def record_metrics(self, frame: int, metrics: Metrics, **more: Metrics) -> None:
        """Keeps the metrics `[M, K]` of an iteration, and more `[M]`, for the next log point."""
        by_name = dict(zip((*self.names, "grad_norm"), as_array(metrics).T, strict=True))
        by_name |= {name: as_array(one) for name, one in more.items()}
        by_name["lr"] = np.array(self.coefficients.numbers("lr", frame))
        self._metrics = np.stack([by_name[name] for name in self.columns], 1).astype(np.float32, copy=False)

    def metrics(self) -> Mapping[str, np.ndarray]:
        return dict(zip(self.columns, self._metrics.T, strict=True))

    def notes(self) -> dict[str, Any]:
        return {"compiled": self.update.compiled, "device": str(self.device)}

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
