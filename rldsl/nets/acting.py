"""Inference for acting: from numpy observations to numpy policy outputs, without gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rldsl.nets.activations import activate_in_place
from rldsl.nets.actor_critic import ActorCritic
from rldsl.nets.heads import Gaussian, Head
from rldsl.nets.layout import scope
from rldsl.nets.mlp import LAYER_NORM_EPS, MLPTrunk
from rldsl.nets.network import Network
from rldsl.nets.policy_network import PolicyNetwork
from rldsl.nets.q_network import QNetwork

NumpyPolicy: TypeAlias = np.ndarray | Gaussian[np.ndarray]
"""Logits or Q-values `[M, N, A]`, or a Gaussian."""

# Up to this many activations in the widest layer of a member, numpy's smaller overhead beats torch's faster products.
_NUMPY_MAX_LAYER = 8192


class Actor(ABC):
    """A network with the current parameters."""

    state: np.ndarray
    """Recurrent state `[M, N, S]` of the episodes in progress. May be set."""

    @abstractmethod
    def refresh(self, flat: Tensor) -> None:
        """Use the parameters `[M, P]`; call it after every update."""

    @abstractmethod
    def __call__(self, obs: np.ndarray, starts: np.ndarray | None = None) -> NumpyPolicy:
        """The policy output for `obs` `[M, N, *shape]`. `starts` `[M, N]` is True where an episode begins."""


class DensePath(NamedTuple):
    """The trunk and head used for acting, if they are plain linear layers, with their parameter prefixes."""

    trunk: MLPTrunk
    trunk_prefix: str
    head: Head
    head_prefix: str


def make_actor(network: Network, flat: Tensor, num_envs: int) -> Actor:
    """The fastest actor for a network and `num_envs` environments. The number of members does not matter, so that a
    session acts the same alone and in a pack."""
    path = _dense_path(network)
    if path is not None and num_envs * max((*path.trunk.hidden, path.head.outputs)) <= _NUMPY_MAX_LAYER:
        return NumpyActor(network, flat, num_envs, path)
    return TorchActor(network, flat, num_envs)


def _dense_path(network: Network) -> DensePath | None:
    """None for other trunks, subclasses included: they may override `forward`."""
    match network:
        case ActorCritic(actor=MLPTrunk() as trunk, policy_head=head) if type(trunk) is MLPTrunk:
            return DensePath(trunk, network.actor_prefix, head, "actor.")
        case QNetwork(trunk=MLPTrunk() as trunk, head=Head() as head) if type(trunk) is MLPTrunk:
            return DensePath(trunk, "trunk.", head, "")
        case PolicyNetwork(trunk=MLPTrunk() as trunk, head=head) if type(trunk) is MLPTrunk:
            return DensePath(trunk, "actor.trunk.", head, "actor.")
    return None


class TorchActor(Actor):
    """Any network, on the device of its parameters."""

    def __init__(self, network: Network, flat: Tensor, num_envs: int) -> None:
        self._network = network
        self.state = _empty_state(network, flat, num_envs)
        self.refresh(flat)

    def refresh(self, flat: Tensor) -> None:
        self._params = self._network.layout.views(flat.detach())
        self._device = flat.device

    @torch.inference_mode()
    def __call__(self, obs: np.ndarray, starts: np.ndarray | None = None) -> NumpyPolicy:
        state = self.state if starts is None else np.where(starts[..., None], np.float32(0), self.state)
        policy, new_state = self._network.act(self._params, self._tensor(obs), self._tensor(state))
        self.state = new_state.cpu().numpy()
        if isinstance(policy, Gaussian):
            return Gaussian(policy.mean.cpu().numpy(), policy.log_std.cpu().numpy())
        return policy.cpu().numpy()

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


class NumpyActor(Actor):
    """Linear layers in plain numpy, reading the parameters in place if they are on the CPU."""

    def __init__(self, network: Network, flat: Tensor, num_envs: int, path: DensePath) -> None:
        self._layout, self._path = network.layout, path
        self._flat: Tensor | None = None
        self.state = _empty_state(network, flat, num_envs)
        self.refresh(flat)

    def refresh(self, flat: Tensor) -> None:
        if flat.is_cpu and flat is self._flat:
            return  # the arrays share its memory
        self._flat = flat
        views = self._layout.views(flat.detach().cpu())
        params = {name: view.numpy() for name, view in views.items()}
        self._alone = len(flat) == 1
        if self._alone:  # numpy multiplies plain matrices faster than stacks of one matrix
            params = {name: array[0] for name, array in params.items()}
        self._head = scope(params, self._path.head_prefix)
        trunk = scope(params, self._path.trunk_prefix)
        self._layers = [
            tuple(trunk.get(f"{name}.{kind}") for kind in ("weight", "bias", "scale", "shift"))
            for name, _, _ in self._path.trunk.layers
        ]

    def __call__(self, obs: np.ndarray, starts: np.ndarray | None = None) -> NumpyPolicy:
        x = _as_float(obs).reshape(*obs.shape[self._alone : 2], -1)
        for weight, bias, scale, shift in self._layers:
            x = x @ weight
            x += bias
            if scale is not None:
                x = _layer_norm(x) * scale + shift
            activate_in_place(self._path.trunk.activation, x)
        x = x @ self._head["head.weight"]
        x += self._head["head.bias"]
        policy: NumpyPolicy = self._path.head.read(self._head, x)
        if not self._alone:
            return policy
        return Gaussian(*(part[None] for part in policy)) if isinstance(policy, Gaussian) else policy[None]


def _empty_state(network: Network, flat: Tensor, num_envs: int) -> np.ndarray:
    return np.zeros((flat.shape[0], num_envs, network.acting_state_size), np.float32)


def _as_float(obs: np.ndarray) -> np.ndarray:
    """As `trunk.as_float`."""
    x = obs.astype(np.float32, copy=False)
    return x / 255 if obs.dtype == np.uint8 else x


def _layer_norm(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    normal: np.ndarray = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + LAYER_NORM_EPS)
    return normal
