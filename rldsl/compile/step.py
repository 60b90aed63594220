"""A training step that is compiled as a whole at its first call, or runs eagerly if that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, fx

from rldsl.compile import inductor
from rldsl.compile.activity import activity
from rldsl.compile.cache import Cache, Place, digest_of
from rldsl.compile.inductor import Graph
from rldsl.compile.rewrites import rewrite_layers

Batch = Mapping[str, Tensor]
Argument = Tensor | Batch


class Report(Protocol):
    """Receives the outcome of compiling a step."""

    failure: str | None

    def succeed(self, kernels: str) -> None: ...
    def fail(self, reason: str) -> None: ...


class Compiled(NamedTuple):
    """Machine code, where its inputs are among the arguments of the step, and the inputs that are not arguments."""

    run: Graph
    places: list[Place]
    captured: list[Tensor]


class CompiledStep:
    """A method of tensors and dicts of tensors that returns one tensor and may change its arguments in place.

    All calls have tensors of the same shapes under the same names, and the first `constants` arguments are the same
    objects in every call. The first call traces and compiles the method. If a `cache_key` is given, which must
    determine the code of the method, the machine code is kept on disk: a later process loads it without tracing. If
    anything fails, `report` records it, all arguments are as they were before the call, and the method runs eagerly
    from then on.
    """

    def __init__(self, method: Any, report: Report, cache_key: str | None = None, constants: int = 0) -> None:
        self._method = method
        self._report = report
        self._cache_key = cache_key
        self._constants = constants
        self._graph: Graph | None = None
        self._inputs: list[Tensor] = []
        """What the graph was called with last."""
        self._changing: list[tuple[int, int, str | int | None]] = []
        """The inputs that change from call to call: index, number of the argument and key in it."""

    def __call__(self, *arguments: Argument) -> Tensor:
        if self._graph is None:
            return self._first_call(arguments)
        given: Any = arguments
        for index, argument, key in self._changing:
            self._inputs[index] = given[argument] if key is None else given[argument][key]
        return self._graph(self._inputs)[0]

    @torch.no_grad()
    def _first_call(self, arguments: Sequence[Argument]) -> Tensor:
        if self._report.failure is None:
            before = [(tensor, tensor.clone()) for _, tensor in _leaves(arguments)]
            try:
                result = self._prepare(arguments)(self._inputs)[0]
            except Exception as error:  # whatever it is, training must go on
                for tensor, saved in before:
                    tensor.copy_(saved)
                self._graph = None
                self._report.fail(_first_line(error))
            else:
                return result
        eager: Tensor = self._method(*arguments)
        return eager

    def _prepare(self, arguments: Sequence[Argument]) -> Graph:
        """Loads or compiles the method, without running it."""
        leaves = _leaves(arguments)
        key = self._cache_key and digest_of(self._cache_key, *(f"{place} {_kind(tensor)}" for place, tensor in leaves))
        cached = Cache().find(key) if key else None
        if cached and (run := inductor.load(cached.path)):
            compiled = Compiled(run, cached.places, [])
            kernels = cached.kernels
        else:
            with activity.compiling():
                compiled, kernels = self._compile(arguments, key)
        given: Any = (*arguments, compiled.captured)
        self._inputs = [given[at] if key is None else given[at][key] for at, key in compiled.places]
        places = enumerate(compiled.places)
        self._changing = [(i, at, key) for i, (at, key) in places if self._constants <= at < len(arguments)]
        self._graph = compiled.run
        self._report.succeed(kernels)
        return compiled.run

    def _compile(self, arguments: Sequence[Argument], key: str | None) -> tuple[Compiled, str]:
        distinct = _distinct(arguments)
        built, inputs = trace(self._method, distinct)
        places, captured = _locate(inputs, distinct)
        if key and built.digest and not captured:
            Cache().name(key, built.digest, places, built.kernels)
        return Compiled(built.run, places, captured), built.kernels


class _TracedError(Exception):
    """Ends the call of a traced method before it runs."""


def trace(method: Any, arguments: Sequence[Argument]) -> tuple[inductor.Built, Sequence[Tensor]]:
    """A method as compiled code, and the tensors that are its inputs; nothing is run.

    The code object is copied because torch finds compiled code by it, and would have to tell two instances apart.
    """
    found: list[tuple[Callable[[], inductor.Built], Sequence[Tensor]]] = []
    errors: list[Exception] = []

    def backend(graph: fx.GraphModule, examples: list[Tensor]) -> Callable[..., Any]:
        try:
            rewrite_layers(graph)
            build = inductor.compile_graph(graph, examples)
        except Exception as error:
            errors.append(error)
            raise

        def stop(*inputs: Tensor) -> Any:
            found.append((build, inputs))
            raise _TracedError

        return stop

    inductor.build_privately()
    function: Any = method.__func__
    copy = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
    bound = MethodType(copy, method.__self__)
    try:
        torch.compile(bound, fullgraph=True, dynamic=False, backend=backend)(*arguments)
    except _TracedError:
        pass
    except Exception as error:
        raise errors[0] if errors else error from None  # without what torch wraps around it
    ((build, inputs),) = found
    return build(), inputs


def _locate(inputs: Sequence[Tensor], arguments: Sequence[Argument]) -> tuple[list[Place], list[Tensor]]:
    """Where the inputs of a graph are: among the arguments, or in the list of tensors that the method captured."""
    by_tensor = {id(tensor): place for place, tensor in _leaves(arguments)}
    captured: list[Tensor] = []
    for tensor in inputs:
        if id(tensor) not in by_tensor:
            by_tensor[id(tensor)] = (len(arguments), len(captured))
            captured.append(tensor)
    return [by_tensor[id(tensor)] for tensor in inputs], captured


def _leaves(arguments: Sequence[Argument]) -> list[tuple[Place, Tensor]]:
    """All tensors and where they are."""
    leaves: list[tuple[Place, Tensor]] = []
    for at, argument in enumerate(arguments):
        parts = {None: argument} if isinstance(argument, Tensor) else argument
        leaves.extend(((at, key), part) for key, part in parts.items())
    return leaves


def _distinct(arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments without repeated tensors: torch would assume that these are the same tensor in every call."""
    seen: set[int] = set()

    def own(tensor: Tensor) -> Tensor:
        kept = tensor.clone() if id(tensor) in seen else tensor
        seen.add(id(kept))
        return kept

    return [
        own(argument) if isinstance(argument, Tensor) else {key: own(part) for key, part in argument.items()}
        for argument in arguments
    ]


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {tensor.device}"


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}" if text else type(error).__name__
