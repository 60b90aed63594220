"""One gradient step of all members: loss, gradients, clipping, optimizer; eager or compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.compile import Compilation, flush_denormals, gradients, separate_tensors
from rldsl.maths.optimizers import (
    adam,
    adam_state,
    bias_corrections,
    clip_by_norm,
    decay_weights,
    rmsprop,
    rmsprop_state,
)
from rldsl.nets.layout import Layout, Params, prefixed
from rldsl.spec import optimizer as spec

Batch = Mapping[str, Tensor]
Loss = Callable[[Params, Batch, Batch], tuple[Tensor, Tensor]]
"""From parameters, a batch and coefficients to the loss `[M]` and metrics `[M, K]`."""
Prepare = Callable[[Batch, Batch], Batch]
"""From the batch and the coefficients of a call to the batch that the loss is given."""
AfterStep = Callable[[Params, Batch, Batch], None]
"""Changes other tensors in place after a step, such as target networks, given the new parameters in pieces, the batch
and the coefficients."""

FLAT = ""
"""The name of parameters that are not split into one tensor each."""
STEP = "step"
"""The step count `[M]` in the state of an optimizer; all other entries have the shape of the parameters."""


class Update:
    """The parameters `[M, P]` of all members, the state of their optimizer, and the function that takes a step.

    `views` gives the parameters that the loss takes from `flat`; by default these are `layout.views`. One call takes
    `steps_per_call` consecutive steps. If that is more than one, each has its own batch: every tensor of the batch is
    `[steps_per_call, M, ...]`. `cache_key` identifies the code of the loss; with it, the compiled step is kept on disk.
    """

    def __init__(
        self,
        layout: Layout,
        flat: Tensor,
        optimizer: spec.Optimizer,
        loss: Loss,
        compilation: Compilation | None = None,
        cache_key: str | None = None,
        *,
        views: Callable[[Tensor], Params] | None = None,
        prepare: Prepare | None = None,
        after_step: AfterStep | None = None,
        state: dict[str, Tensor] | None = None,
        steps_per_call: int = 1,
    ) -> None:
        self.layout = layout
        self.flat = flat
        self.optimizer = optimizer
        self.loss = loss
        self.views = views or layout.views
        self.prepare = prepare
        self.after_step = after_step
        self.steps_per_call = steps_per_call
        self.state = self._init_state() if state is None else state
        self.compilation = compilation or Compilation()
        self._pieces = self.pieces(flat)
        self._state_pieces = self._split_state()
        self._steps: Callable[..., Tensor] = (
            self.compilation.compiled(self._all_steps, cache_key, constants=2)
            if self.compilation.enabled
            else torch.no_grad()(self._all_steps)
        )

    def _init_state(self) -> dict[str, Tensor]:
        return rmsprop_state(self.flat) if isinstance(self.optimizer, spec.RMSprop) else adam_state(self.flat)

    @property
    def split(self) -> bool:
        """Whether each parameter is a tensor of its own: compiled for a CPU, the optimizer then reads each gradient
        where the backward pass put it. Otherwise one tensor for all parameters has less overhead."""
        return self.compilation.enabled and self.flat.is_cpu

    def pieces(self, flat: Tensor) -> Params:
        """A tensor like `flat` in the form that a step takes: a tensor for each parameter, or a single one."""
        return separate_tensors(self.layout.views(flat)) if self.split else {FLAT: flat}

    def _split_state(self) -> Params:
        pieces: Params = {}
        for name, tensor in self.state.items():
            pieces |= {name: tensor} if name == STEP else prefixed(f"{name}.", self.pieces(tensor))
        return pieces

    def params(self, pieces: Params) -> Params:
        """The parameters that the loss takes."""
        return self.views(pieces[FLAT]) if FLAT in pieces else pieces

    def __call__(self, lr: Tensor, max_grad_norm: Tensor, coefficients: Batch, batch: Batch) -> Tensor:
        """Takes a step, or several; returns the metrics of the loss and the gradient norm, `[M, K + 1]` for each."""
        with flush_denormals():
            return self._steps(self._pieces, self._state_pieces, lr, max_grad_norm, coefficients, batch)

    def _all_steps(
        self, pieces: Params, state: Params, lr: Tensor, max_grad_norm: Tensor, coefficients: Batch, batch: Batch
    ) -> Tensor:
        if self.prepare is not None:
            batch = self.prepare(batch, coefficients)
        if self.steps_per_call == 1:
            return self._step(pieces, state, lr, max_grad_norm, coefficients, batch)
        rows = zip(*(stacked.unbind(0) for stacked in batch.values()), strict=True)
        batches = [dict(zip(batch, row, strict=True)) for row in rows]
        return torch.stack([self._step(pieces, state, lr, max_grad_norm, coefficients, one) for one in batches])

    def _step(
        self, pieces: Params, state: Params, lr: Tensor, max_grad_norm: Tensor, coefficients: Batch, batch: Batch
    ) -> Tensor:
        def total_loss(pieces: Params) -> tuple[Tensor, Tensor]:
            loss, metrics = self.loss(self.params(pieces), batch, coefficients)
            return loss.sum(), metrics.detach()

        grads, metrics = gradients(total_loss, pieces)
        clipped, norm = clip_by_norm(grads, max_grad_norm)
        self._optimizer_step(pieces, clipped, state, lr)
        if self.after_step is not None:
            self.after_step(pieces, batch, coefficients)
        return torch.cat([metrics, norm.unsqueeze(1)], 1)

    def _optimizer_step(self, pieces: Params, grads: Mapping[str, Tensor], state: Params, lr: Tensor) -> None:
        """`lr` is `[M]`, or `[M, P]` if it differs between parameters."""
        if isinstance(self.optimizer, spec.AdamW):
            self._decay_weights(pieces, lr, self.optimizer.weight_decay)
        rule = self._update_rule(state)
        lr_of = self.layout.views(lr) if lr.dim() > 1 and FLAT not in pieces else dict.fromkeys(pieces, lr)
        for name, piece in pieces.items():
            own_state = {kind: state[f"{kind}.{name}"] for kind in self.state if kind != STEP}
            rule(piece, grads[name], own_state, lr_of[name])

    def _decay_weights(self, pieces: Params, lr: Tensor, weight_decay: float) -> None:
        """Of the layers' weights only: biases, the scales and shifts of norms, log_std and log_alpha do not decay."""
        params = self.layout.views(pieces[FLAT]) if FLAT in pieces else pieces
        lr_of = self.layout.views(lr) if lr.dim() > 1 else dict.fromkeys(params, lr)
        for name, param in params.items():
            if name.endswith("weight"):
                decay_weights(param, lr_of[name], weight_decay)

    def _update_rule(self, state: Params) -> Callable[..., None]:
        """The optimizer's update of one tensor, given its gradient, its state and its learning rate."""
        optimizer = self.optimizer
        if isinstance(optimizer, spec.RMSprop):
            return partial(rmsprop, alpha=optimizer.alpha, eps=optimizer.eps)
        if not isinstance(optimizer, (spec.Adam, spec.AdamW)):
            raise TypeError(f"unknown optimizer {type(optimizer).__name__}")
        beta1, beta2 = optimizer.betas
        corrections = bias_corrections(state[STEP].add_(1), beta1, beta2)
        return partial(adam, corrections=corrections, beta1=beta1, beta2=beta2, eps=optimizer.eps)

    def save(self, member: int) -> dict[str, Any]:
        """The parameters and optimizer state of one member."""
        tensors = {"flat": self.flat, **self.state}
        return {name: tensor[member].cpu().numpy().copy() for name, tensor in tensors.items()}

    def load(self, member: int, saved: Mapping[str, np.ndarray]) -> None:
        """Restores what `save` returned for one member."""
        tensors = {"flat": self.flat, **self.state}
        for name, array in saved.items():
            tensors[name][member] = torch.from_numpy(np.array(array)).to(self.flat.device)
