"""A whole update as one function: loss, gradients, clip, optimizer step; eager, or compiled where that pays."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.compiled import CompiledStep
from rldsl.maths.optimizers import adam, adam_state, adamw, clip_by_norm, rmsprop, rmsprop_state
from rldsl.nets.layout import Layout, Params
from rldsl.spec import optimizer as spec
from rldsl.spec.compute import Compute

Batch = Mapping[str, Tensor]
Loss = Callable[[Params, Batch, Batch], tuple[Tensor, Tensor]]
"""From parameters, a batch and coefficients to the loss `[M]` and figures `[M, K]` about it."""
Then = Callable[[Tensor, Batch, Batch], None]
"""What else is changed in place after a step, by the new parameters, the batch and the coefficients."""

REPAYING_STEPS = 20_000
"""Gradient steps from which compiling saves as much as the twenty seconds that it takes the first time."""


class Update:
    """Parameters `[M, P]`, the state of their optimizer, and the function that moves both by one step.

    `origin` is what determines the loss, in words: a compiled step is found again by it in a later process.
    """

    def __init__(
        self,
        layout: Layout,
        flat: Tensor,
        optimizer: spec.Optimizer,
        loss: Loss,
        compiled: bool,
        origin: str | None = None,
        then: Then | None = None,
    ) -> None:
        self.layout = layout
        self.flat = flat
        self.optimizer = optimizer
        self.loss = loss
        self.then = then
        self.state = rmsprop_state(flat) if isinstance(optimizer, spec.RMSprop) else adam_state(flat)
        self.compiled = compiled
        self._move: Callable[..., Tensor] = (
            CompiledStep(self._whole, origin) if compiled else torch.no_grad()(self._whole)
        )

    def __call__(self, lr: Tensor, max_norm: Tensor, coefficients: Batch, batch: Batch) -> Tensor:
        """One step; returns the loss's figures and the norm of the gradient, `[M, K + 1]`."""
        with without_denormals():
            return self._move(self.flat, self.state, lr, max_norm, coefficients, batch)

    def _whole(
        self, flat: Tensor, state: dict[str, Tensor], lr: Tensor, max_norm: Tensor, coefficients: Batch, batch: Batch
    ) -> Tensor:
        def total(flat: Tensor) -> tuple[Tensor, Tensor]:
            loss, figures = self.loss(self.layout.views(flat), batch, coefficients)
            return loss.sum(), figures.detach()

        grad, figures = self._gradient(total, flat)
        grad, norm = clip_by_norm(grad, max_norm)
        self._apply(flat, grad, state, lr)
        if self.then is not None:
            self.then(flat, batch, coefficients)
        return torch.cat([figures, norm.unsqueeze(1)], 1)

    def _gradient(self, total: Callable[[Tensor], tuple[Tensor, Tensor]], flat: Tensor) -> tuple[Tensor, Tensor]:
        """The same gradient twice: what compiles is slow when eager."""
        if self.compiled:
            gradient: tuple[Tensor, Tensor] = torch.func.grad(total, has_aux=True)(flat)
            return gradient
        with torch.enable_grad():
            leaf = flat.detach().requires_grad_()
            loss, figures = total(leaf)
            return torch.autograd.grad(loss, leaf)[0], figures

    def _apply(self, flat: Tensor, grad: Tensor, state: dict[str, Tensor], lr: Tensor) -> None:
        match self.optimizer:
            case spec.AdamW(betas=(beta1, beta2), eps=eps, weight_decay=decay):
                adamw(flat, grad, state, lr, torch.full_like(flat[:, 0], decay), beta1, beta2, eps)
            case spec.Adam(betas=(beta1, beta2), eps=eps):
                adam(flat, grad, state, lr, beta1, beta2, eps)
            case spec.RMSprop(alpha=alpha, eps=eps):
                rmsprop(flat, grad, state, lr, alpha, eps)
            case other:
                raise TypeError(f"there is no optimizer {type(other).__name__}")

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
