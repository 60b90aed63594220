"""What the code of a training step needs in order to compile well, and to run eagerly just the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


def gradients(
    function: Callable[[dict[str, Tensor]], tuple[Tensor, Tensor]], params: dict[str, Tensor]
) -> tuple[dict[str, Tensor], Tensor]:
    """The gradients of a function's first result, a scalar, with respect to `params`, and its second result.

    torch's compiler can trace `torch.func.grad` but not `torch.autograd.grad`, which has less overhead when eager.
    """
    if torch.compiler.is_compiling():
        traced: tuple[dict[str, Tensor], Tensor] = torch.func.grad(function, has_aux=True)(params)
        return traced
    with torch.enable_grad():
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in params.items()}
        value, auxiliary = function(leaves)
        grads = torch.autograd.grad(value, list(leaves.values()))
    return dict(zip(leaves, grads, strict=True)), auxiliary


def separate_tensors(views: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Views of one CPU tensor as tensors that share its memory, but not its identity.

    A compiled step that changes views of one tensor writes the whole tensor again after each change, because torch
    keeps all views of a tensor consistent. Through numpy, torch does not know that they belong together; the views must
    not overlap.
    """
    return {name: torch.from_numpy(view.detach().numpy()) for name, view in views.items()}


class flush_denormals:  # noqa: N801 (used like a function; a class is faster than `contextlib.contextmanager`)
    """A context in which floats below 1.2e-38 are treated as 0 on this thread.

    The moments of a unit without gradients decay to such numbers, on which processors are many times slower. Outside of
    the context nothing changes: environments compute as their originals do.
    """

    def __enter__(self) -> None:
        torch.set_flush_denormal(True)

    def __exit__(self, *error: object) -> None:
        torch.set_flush_denormal(False)
