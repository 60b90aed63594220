"""A step compiled whole, ahead of its calls, into a library of machine code: a call pays for nothing but its products
and loops, and a process that finds the library on disk starts without torch's compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, fx

from rldsl.agents import products
from rldsl.agents.libraries import Libraries, Place, digest_of, graph_digest

Batch = Mapping[str, Tensor]
Graph = Callable[[list[Tensor]], Sequence[Tensor]]
"""A compiled step, of its inputs in the order of the traced graph."""


class CompiledStep:
    """A method of tensors, and of dicts of them, that returns one tensor.

    All calls have tensors of the same shapes, under the same names. The first one traces and compiles, unless the
    library of an `origin` (what determines the code of the method) is on disk; it notes where the inputs of the graph
    come from, and the calls that follow hand them over. The first `steady` arguments are the same in every call.
    """

    def __init__(self, method: Any, origin: str | None = None, steady: int = 0) -> None:
        self._method = method
        self._origin = origin
        self._steady = steady
        self._graph: Graph | None = None
        self._inputs: list[Tensor] = []
        """What the graph was last called with."""
        self._changing: list[tuple[int, int, str | None]] = []
        """Which of the inputs change from call to call, and their places."""
        self._places: list[Place] = []
        self._held: list[Tensor] = []
        """Inputs that are no arguments; the last place is theirs."""
        self._traced_inputs: Sequence[Tensor] = ()
        self._library: str | None = None

    def __call__(self, *arguments: Tensor | Batch) -> Tensor:
        if self._graph is None:
            return self._first(arguments)
        given: Any = arguments
        for index, at, key in self._changing:
            self._inputs[index] = given[at] if key is None else given[at][key]
        return self._graph(self._inputs)[0]

    @torch.no_grad()
    def _first(self, arguments: Sequence[Tensor | Batch]) -> Tensor:
        apart = _apart(arguments)
        leaves = _leaves(apart)
        origin = self._origin and digest_of(self._origin, *(f"{place} {_kind(one)}" for place, one in leaves))
        if origin and (found := Libraries().find(origin)) and (graph := load(found.path)):
            self._graph, self._places = graph, found.places
            self._note_inputs(arguments)
            return self(*arguments)
        result: Tensor = self._traced()(*apart)
        self._note_places(leaves, len(arguments))
        self._note_inputs(arguments)
        if origin and self._library and not self._held:
            Libraries().name(origin, self._library, self._places)
        return result

    def _note_inputs(self, arguments: Sequence[Tensor | Batch]) -> None:
        given: Any = (*arguments, self._held)
        self._inputs = [given[at] if key is None else given[at][key] for at, key in self._places]
        places = enumerate(self._places)
        self._changing = [(i, at, key) for i, (at, key) in places if self._steady <= at < len(arguments)]

    def _note_places(self, leaves: Sequence[tuple[Place, Tensor]], behind: int) -> None:
        by_tensor = {id(one): place for place, one in leaves}
        for one in self._traced_inputs:
            if id(one) not in by_tensor:
                by_tensor[id(one)] = (behind, len(self._held))
                self._held.append(one)
            self._places.append(by_tensor[id(one)])
        self._traced_inputs = ()

    def _traced(self) -> Any:
        """Of a copy of the code: torch finds what it compiled by the code, and only guards tell two methods apart."""
        function: Any = self._method.__func__
        copy = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
        return torch.compile(
            MethodType(copy, self._method.__self__), fullgraph=True, dynamic=False, backend=self._backend
        )

    def _backend(self, graph: fx.GraphModule, examples: list[Tensor]) -> Any:
        compiled, self._library = compile_graph(graph, examples)

        def run(*inputs: Tensor) -> Any:
            self._graph, self._traced_inputs = compiled, inputs
            return compiled(list(inputs))

        return run


def compile_graph(graph: fx.GraphModule, examples: list[Tensor]) -> tuple[Graph, str | None]:
    """What dynamo traced, as it runs, and the digest of its library; a GPU has none."""
    if any(one.device.type != "cpu" for one in examples):
        from torch._inductor.compile_fx import compile_fx

        compiled: Any = compile_fx(graph, examples, config_patches={"size_asserts": False})
        return lambda inputs: compiled(*inputs), None
    lowered, fakes = _lowered(graph, examples)
    own = products.with_own_products(lowered)
    libraries, digest = Libraries(), graph_digest(own, fakes)
    if (path := libraries.path(digest)) and (found := load(path)):
        return found, digest
    with TemporaryDirectory() as scratch:
        built = _build(own, lowered, fakes, scratch)
        if (kept := libraries.keep(digest, built)) and (found := load(kept)):
            return found, digest
        if made := load(built):
            return made, None
        raise RuntimeError(f"the compiled step cannot be loaded: {built}")


def load(library: str) -> Graph | None:
    """A library as it is called, past Python's part of torch; none if it cannot be read."""
    try:
        run: Graph = torch._C._aoti.AOTIModelContainerRunnerCpu(library, 1).run  # type: ignore[attr-defined]
    except RuntimeError:
        return None
    return run


def _lowered(graph: fx.GraphModule, examples: list[Tensor]) -> tuple[fx.GraphModule, list[Tensor]]:
    """The graph in torch's own operators, without mutation but that of its inputs at the end; and inputs like its."""
    from functorch.compile import make_boxed_func
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._inductor.decomposition import select_decomp_table

    seen: list[tuple[fx.GraphModule, list[Tensor]]] = []

    def look(lowered: fx.GraphModule, fakes: Sequence[Tensor]) -> Any:
        seen.append((lowered, list(fakes)))
        return make_boxed_func(lowered.forward)

    aot_module_simplified(
        graph,
        examples,
        fw_compiler=look,
        inference_compiler=look,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
    )
    ((lowered, fakes),) = seen
    if len(fakes) != len(examples):
        raise RuntimeError("two inputs of a compiled step share memory, of which one is written to")
    return lowered, fakes


def _build(own: fx.GraphModule, plain: fx.GraphModule, fakes: list[Tensor], scratch: str) -> str:
    from torch._inductor.exc import InductorError

    if own is not plain:
        with suppress(InductorError):  # of a C++ compiler that is older than the processor
            return _compile(own, fakes, scratch, products.settings(own))
    return _compile(plain, fakes, scratch)


def _compile(lowered: fx.GraphModule, fakes: list[Tensor], scratch: str, more: Mapping[str, Any] | None = None) -> str:
    from torch._inductor.compile_fx import compile_fx_aot

    settings = {
        "size_asserts": False,
        "aot_inductor.output_path": f"{scratch}/step.so",
        "aot_inductor.precompile_headers": False,  # they take longer, and 500 MB of disk, than they ever save
        **(more or {}),
    }
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # torch's, of torch
        return str(compile_fx_aot(lowered, fakes, config_patches=settings))


def _kind(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.stride()} {tensor.device}"


def _leaves(arguments: Sequence[Tensor | Batch]) -> list[tuple[Place, Tensor]]:
    """All tensors and where they stand."""
    leaves: list[tuple[Place, Tensor]] = []
    for at, one in enumerate(arguments):
        parts = {None: one} if isinstance(one, Tensor) else one
        leaves.extend(((at, key), part) for key, part in parts.items())
    return leaves


def _apart(arguments: Sequence[Tensor | Batch]) -> list[Tensor | Batch]:
    """The arguments without a tensor that stands in two places: torch would take the two for one in every call."""
    seen: set[int] = set()

    def own(one: Tensor) -> Tensor:
        kept = one.clone() if id(one) in seen else one
        seen.add(id(kept))
        return kept

    return [own(one) if isinstance(one, Tensor) else {key: own(part) for key, part in one.items()} for one in arguments]
