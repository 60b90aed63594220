"""A whole update as one function: loss, gradients, clip, optimizer step; eager, or compiled where that pays."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.compiled import CompiledStep
from rldsl.maths.optimizers import adam, adam_state, adamw, bias_corrections, clip_by_norm, rmsprop, rmsprop_state
from rldsl.nets.layout import Layout, Params, prefixed
from rldsl.spec import optimizer as spec
from rldsl.spec.compute import Compute

Batch = Mapping[str, Tensor]
Loss = Callable[[Params, Batch, Batch], tuple[Tensor, Tensor]]
"""From parameters, a batch and coefficients to the loss `[M]` and metrics `[M, K]` about it."""
Before = Callable[[Batch, Batch], Batch]
"""From all that a call is given, batch and coefficients, what its steps take as their batches."""
Then = Callable[[Params, Batch, Batch], None]
"""What else is changed in place after a step, by the pieces of the new parameters, the batch and the coefficients."""

WHOLE = ""
"""The name of a row that is not in pieces."""
STEP = "step"
"""In an optimizer's state, the one thing that is not like the parameters."""

REPAYING_STEPS = 20_000
"""Gradient steps from which compiling saves as much as the twenty seconds that it takes the first time."""


class Update:
    """Parameters `[M, P]`, the state of their optimizer, and the function that moves both by one step.

    `origin` is what determines the loss, in words: a compiled step is found again by it in a later process. `views` are
    what the loss takes of a row, if not what `layout` says. With more than one step `together`, a call makes so many,
    each on a batch of its own: what is in its batch is `[together, M, ...]`.
    """

    def __init__(
        self,
        layout: Layout,
        flat: Tensor,
        optimizer: spec.Optimizer,
        loss: Loss,
        compiled: bool,
        origin: str | None = None,
        *,
        views: Callable[[Tensor], Params] | None = None,
        before: Before | None = None,
        then: Then | None = None,
        state: dict[str, Tensor] | None = None,
        together: int = 1,
    ) -> None:
        self.layout = layout
        self.flat = flat
        self.optimizer = optimizer
        self.loss = loss
        self.views = views or layout.views
        self.before = before
        self.then = then
        self.together = together
        self.state = self._first_state() if state is None else state
        self.compiled = compiled
        self._pieces = self.pieces(flat)
        self._state = self._state_pieces()
        self._move: Callable[..., Tensor] = (
            CompiledStep(self._whole, origin, steady=2) if compiled else torch.no_grad()(self._whole)
        )

    def _first_state(self) -> dict[str, Tensor]:
        return rmsprop_state(self.flat) if isinstance(self.optimizer, spec.RMSprop) else adam_state(self.flat)

    def pieces(self, flat: Tensor) -> Params:
        """A row as a step changes it: whole, or, compiled for a CPU, as a tensor for each parameter in the same memory.

        So a gradient is used where its product has put it, instead of being copied into a row first. Through numpy:
        torch would see views of one tensor, and bring it up to date as a whole after each.
        """
        if not (self.compiled and flat.is_cpu):
            return {WHOLE: flat}
        return {name: torch.from_numpy(view.numpy()) for name, view in self.layout.views(flat).items()}

    def _state_pieces(self) -> Params:
        pieces: Params = {}
        for name, tensor in self.state.items():
            pieces |= {name: tensor} if name == STEP else prefixed(f"{name}.", self.pieces(tensor))
        return pieces

    def params(self, pieces: Params) -> Params:
        """What the loss takes, of the pieces of a row."""
        return self.views(pieces[WHOLE]) if WHOLE in pieces else pieces

    def __call__(self, lr: Tensor, max_norm: Tensor, coefficients: Batch, batch: Batch) -> Tensor:
        """One step; returns the loss's metrics and the norm of the gradient, `[M, K + 1]`, of each of several."""
        with without_denormals():
            return self._move(self._pieces, self._state, lr, max_norm, coefficients, batch)

    def _whole(
        self, pieces: Params, state: Params, lr: Tensor, max_norm: Tensor, coefficients: Batch, batch: Batch
    ) -> Tensor:
        if self.before is not None:
            batch = self.before(batch, coefficients)
        if self.together == 1:
            return self._step(pieces, state, lr, max_norm, coefficients, batch)
        batches = zip(*(many.unbind(0) for many in batch.values()), strict=True)
        steps = [dict(zip(batch, one, strict=True)) for one in batches]
        return torch.stack([self._step(pieces, state, lr, max_norm, coefficients, step) for step in steps])

    def _step(
        self, pieces: Params, state: Params, lr: Tensor, max_norm: Tensor, coefficients: Batch, batch: Batch
    ) -> Tensor:
        def total(pieces: Params) -> tuple[Tensor, Tensor]:
            loss, metrics = self.loss(self.params(pieces), batch, coefficients)
            return loss.sum(), metrics.detach()

        grads, metrics = self._gradients(total, pieces)
        grads, norm = clip_by_norm(grads, max_norm)
        self._apply(pieces, grads, state, lr)
        if self.then is not None:
            self.then(pieces, batch, coefficients)
        return torch.cat([metrics, norm.unsqueeze(1)], 1)

    def _gradients(
        self, total: Callable[[Params], tuple[Tensor, Tensor]], pieces: Params
    ) -> tuple[Mapping[str, Tensor], Tensor]:
        """The same gradients twice: what compiles is slow when eager."""
        if self.compiled:
            gradients: tuple[Params, Tensor] = torch.func.grad(total, has_aux=True)(pieces)
            return gradients
        with torch.enable_grad():
            leaves = {name: piece.detach().requires_grad_() for name, piece in pieces.items()}
            loss, metrics = total(leaves)
            grads = torch.autograd.grad(loss, list(leaves.values()))
            return dict(zip(leaves, grads, strict=True)), metrics

    def _apply(self, pieces: Params, grads: Mapping[str, Tensor], state: Params, lr: Tensor) -> None:
        move = self._mover(state)
        rates = self.layout.views(lr) if lr.dim() > 1 and WHOLE not in pieces else dict.fromkeys(pieces, lr)
        for name, piece in pieces.items():
            own = {kind: state[f"{kind}.{name}"] for kind in self.state if kind != STEP}
            move(piece, grads[name], own, rates[name])

    def _mover(self, state: Params) -> Callable[..., None]:
        """The optimizer's step, of a piece, its gradient, its own state and its learning rate."""
        match self.optimizer:
            case spec.RMSprop(alpha=alpha, eps=eps):
                return partial(rmsprop, alpha=alpha, eps=eps)
            case spec.Adam(betas=(beta1, beta2), eps=eps) | spec.AdamW(betas=(beta1, beta2), eps=eps):
                corrections = bias_corrections(state[STEP].add_(1), beta1, beta2)
                settings = {"corrections": corrections, "beta1": beta1, "beta2": beta2, "eps": eps}
                if isinstance(self.optimizer, spec.AdamW):
                    return partial(adamw, weight_decay=self.optimizer.weight_decay, **settings)
                return partial(adam, **settings)
        raise TypeError(f"there is no optimizer {type(self.optimizer).__name__}")

    def save(self, member: int) -> dict[str, Any]:
        """One member's parameters and optimizer state."""
        tensors = {"flat": self.flat, **self.state}
        return {name: tensor[member].cpu().numpy().copy() for name, tensor in tensors.items()}

    def load(self, member: int, saved: Mapping[str, np.ndarray]) -> None:
        """Goes on from what was saved of one member."""
        tensors = {"flat": self.flat, **self.state}
        for name, array in saved.items():
            tensors[name][member] = torch.from_numpy(np.array(array)).to(self.flat.device)


class without_denormals:  # noqa: N801 (used as a function, and quicker than one)
    """Inside, floats below 1e-38 are 0 on this thread: the moments of a dead unit decay to them, and are ten times as
    slow as others. Not outside: environments compute as their originals do."""

    def __enter__(self) -> None:
        torch.set_flush_denormal(True)

    def __exit__(self, *error: object) -> None:
        torch.set_flush_denormal(False)


def choose_compiled(compute: Compute, gradient_steps: int, recurrent: bool = False) -> bool:
    """Whether to compile; says once why not where it was meant to. A loop over time takes too long to compile."""
    repaid = gradient_steps >= REPAYING_STEPS and not recurrent
    wanted = compute.compile == "on" or (compute.compile == "auto" and repaid)
    if wanted and compute.device == "cpu" and not any(map(shutil.which, ("g++", "c++", "clang++"))):
        print("rldsl: no C++ compiler is there: updates run eager", file=sys.stderr)  # noqa: T201 (the session's log)
        return False
    return wanted
