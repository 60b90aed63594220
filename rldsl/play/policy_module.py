"""The deterministic policy of a trained agent as a `torch.nn.Module`, for export: raw observations in, actions out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rldsl.agents.base import Learner
from rldsl.agents.gradient_learner import GradientLearner
from rldsl.envs.contract import Continuous, VectorEnv
from rldsl.nets.heads import Gaussian
from rldsl.play.policy import gymnasium_actions
from rldsl.spec.errors import SpecError

CLIP, EPS = 10.0, 1e-8
"""Those of `rldsl.maths.normalizers.normalize`."""


class PolicyModule(nn.Module):
    """`action = module(observation)`, or `action, state = module(observation, state)` if the network is recurrent.

    `observation` is a batch `[N, *shape]` as `gymnasium.make(...)` gives it, uint8 or float32. Its normalisation, the
    network, the most likely action and its scaling to the environment's bounds are part of the module. `state`
    `[N, S]` is 0 at the start of an episode.
    """

    mean: Tensor | None
    mean_rest: Tensor
    std: Tensor
    bounded: Tensor
    low: Tensor
    high: Tensor
    half_width: Tensor

    def __init__(self, agent: Learner, env: VectorEnv) -> None:
        super().__init__()
        if not isinstance(agent, GradientLearner):
            raise SpecError(f"{type(agent).__name__} has no network to export; only subclasses of GradientLearner do")
        self.network, self.spaces = agent.network, env.spaces
        self.recurrent, self.state_size = agent.recurrent, agent.network.acting_state_size
        self.squash = bool(getattr(getattr(agent, "actions", None), "squash", False))
        self._add_parameters(agent)
        self._add_normalization(agent)
        self._add_actions(env)
        self.eval()

    def forward(self, observation: Tensor, state: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        output, next_state = self.output(observation, self.initial_state(observation) if state is None else state)
        action = self._scaled(output) if isinstance(self.spaces.action, Continuous) else output.argmax(-1) + self.start
        return (action, next_state) if self.recurrent else action

    def output(self, observation: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Logits or Q-values `[N, A]`, or the mean of a Gaussian, and the next state `[N, S]`."""
        params = {name: getattr(self, buffer) for name, buffer in self.buffer_of.items()}
        policy, next_state = self.network.act(params, self._normalized(observation)[None], state[None])
        return (policy.mean if isinstance(policy, Gaussian) else policy)[0], next_state[0]

    def initial_state(self, observation: Tensor) -> Tensor:
        """The recurrent state `[N, S]` at the start of an episode."""
        return torch.zeros((observation.shape[0], self.state_size))

    def _normalized(self, observation: Tensor) -> Tensor:
        if self.mean is None:
            return observation
        centred = observation.to(torch.float32) - self.mean - self.mean_rest
        return (centred / self.std).clamp(-CLIP, CLIP)

    def _scaled(self, output: Tensor) -> Tensor:
        """As `Continuous.rescale`, in the shape of the environment's action space."""
        action = output.tanh() if self.squash else output
        scaled = (action.clamp(-1.0, 1.0) + 1.0) * self.half_width + self.low
        scaled = torch.where(self.bounded, scaled, torch.maximum(action, self.low))
        return torch.minimum(scaled, self.high).reshape(-1, *self.action_shape)

    def _add_parameters(self, agent: GradientLearner[Any]) -> None:
        self.buffer_of: dict[str, str] = {}
        """Names of buffers, which must not contain dots, by name of the parameter."""
        for name, value in agent.network.layout.views(agent.update.flat.detach().clone()).items():
            self.buffer_of[name] = f"parameter_{name.replace('.', '_')}"
            self.register_buffer(self.buffer_of[name], value)

    def _add_normalization(self, agent: GradientLearner[Any]) -> None:
        """The mean as a sum of two float32 numbers: one alone may be off by more than a standard deviation."""
        moments = agent.normalization.observations
        mean = None if moments is None else moments["mean"][0]
        self.register_buffer("mean", None if mean is None else _float32(mean))
        if moments is not None and mean is not None:
            self.register_buffer("mean_rest", _float32(mean - mean.astype(np.float32)))
            self.register_buffer("std", _float32(np.sqrt(moments["var"][0] + EPS)))

    def _add_actions(self, env: VectorEnv) -> None:
        action, native = env.spaces.action, gymnasium_actions(env)
        if not isinstance(action, Continuous):
            self.start = int(native(np.zeros(1, np.int64))[0])
            return
        self.action_shape = native(np.zeros((1, *action.shape))).shape[1:]
        bounded = np.isfinite(action.low) & np.isfinite(action.high)
        half_width = np.where(bounded, (action.high - np.where(bounded, action.low, 0.0)) / 2.0, 0.0)
        self.register_buffer("bounded", torch.from_numpy(bounded))
        for name, value in (("low", action.low), ("high", action.high), ("half_width", half_width)):
            self.register_buffer(name, _float32(value))


def _float32(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))
