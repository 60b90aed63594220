"""A step compiled whole and called directly: past the checks that torch makes of every call, which cost a small network
as much as its products do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, fx

Batch = Mapping[str, Tensor]


class CompiledStep:
    """A method of tensors, and of dicts of them, that returns one tensor.

    All calls have tensors of the same shapes, under the same names. The first one traces and compiles; it notes where
    the inputs of the compiled graph come from, and the ones that follow hand them over.
    """

    def __init__(self, method: Any) -> None:
        self._method = method
        self._graph: Any = None
        self._inputs: Sequence[Tensor] = ()

    def __call__(self, *arguments: Tensor | Batch) -> Tensor:
        if self._graph is None:
            return self._first(arguments)
        given = _leaves(arguments, self._names)
        return self._graph(*[one if place is None else given[place] for place, one in self._order])[0]  # type: ignore[no-any-return]

    def _first(self, arguments: Sequence[Tensor | Batch]) -> Tensor:
        self._names = [None if isinstance(one, Tensor) else tuple(one) for one in arguments]
        arguments = _apart(arguments)
        result: Tensor = self._traced()(*arguments)
        places = {id(one): place for place, one in enumerate(_leaves(arguments, self._names))}
        self._order = [(places.get(id(one)), None if id(one) in places else one) for one in self._inputs]
        self._inputs = ()
        return result

    def _traced(self) -> Any:
        """Of a copy of the code: torch finds what it compiled by the code, and only guards tell two methods apart."""
        function: Any = self._method.__func__
        copy = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
        return torch.compile(
            MethodType(copy, self._method.__self__), fullgraph=True, dynamic=False, backend=self._backend
        )

    def _backend(self, graph: fx.GraphModule, examples: list[Tensor]) -> Any:
        from torch._inductor.compile_fx import compile_fx

        compiled: Any = compile_fx(graph, examples, config_patches={"size_asserts": False})

        def run(*inputs: Tensor) -> Any:
            self._graph, self._inputs = compiled, inputs
            return compiled(*inputs)

        return run


def _leaves(arguments: Sequence[Any], names: Sequence[tuple[str, ...] | None]) -> list[Tensor]:
    leaves: list[Tensor] = []
    for one, keys in zip(arguments, names, strict=True):
        if keys is None:
            leaves.append(one)
        else:
            leaves.extend([one[key] for key in keys])
    return leaves


def _apart(arguments: Sequence[Tensor | Batch]) -> list[Tensor | Batch]:
    """The arguments without a tensor that stands in two places: torch would take the two for one in every call."""
    seen: set[int] = set()

    def own(one: Tensor) -> Tensor:
        kept = one.clone() if id(one) in seen else one
        seen.add(id(kept))
        return kept

    return [own(one) if isinstance(one, Tensor) else {key: own(part) for key, part in one.items()} for one in arguments]
