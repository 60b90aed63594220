"""Lowering, building and loading of traced steps: all private interfaces of torch that rldsl uses are in this file.

They are imported when they are needed, and whatever is missing in an older or newer torch raises here; `CompiledStep`
then runs eagerly.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from rldsl.compile import kernels
from rldsl.compile.activity import activity
from rldsl.compile.cache import Cache, graph_digest, private_directory
from rldsl.compile.rewrites import hoist_scalars

Graph = Callable[[list[Tensor]], Sequence[Tensor]]
"""A compiled step: from its inputs, in the order of the traced graph, to its outputs."""

BUILD_DIRECTORY = "TORCHINDUCTOR_CACHE_DIR"
"""The environment variable that names the directory in which torch builds."""


class Built(NamedTuple):
    """A compiled graph, the kernels in it, and the digest under which the cache keeps it, if it does."""

    run: Graph
    kernels: str
    digest: str | None


def compile_graph(graph: fx.GraphModule, examples: list[Tensor]) -> Callable[[], Built]:
    """Compiles what `torch.compile` traced: for a CPU into a shared library, for a GPU in memory.

    This is called inside of `torch.compile`, where torch 2.7 cannot build libraries: the function that is returned
    builds it.
    """
    if any(example.device.type != "cpu" for example in examples):
        built = compile_in_memory(graph, examples)
        return lambda: built
    lowered, inputs = lower(graph, examples)
    return lambda: build_library(lowered, inputs)


def build_privately() -> None:
    """Lets torch build in a directory of the user's own: it also loads what it builds there, such as a small library
    that tests the processor, and its default in /tmp could have been made by somebody else."""
    given = os.environ.get(BUILD_DIRECTORY)
    if given is not None and private_directory(Path(given)) is not None:
        return
    folder = Cache().build_directory()
    os.environ[BUILD_DIRECTORY] = str(folder) if folder else _temporary_directory()


@functools.cache
def _temporary_directory() -> str:
    """A private directory that ends with the process."""
    folder = mkdtemp(prefix="rldsl-build-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def build_library(lowered: fx.GraphModule, inputs: list[Tensor]) -> Built:
    """Compiles a lowered graph, with the kernels of this package if they can be compiled."""
    hoist_scalars(lowered)
    with_kernels = kernels.with_sparse_products(lowered)
    if with_kernels is not lowered:
        try:
            return _library(with_kernels, inputs, kernels.inductor_options(with_kernels), "avx512")
        except Exception as error:  # such as a C++ compiler without AVX-512
            warnings.warn(f"the AVX-512 kernels of rldsl cannot be compiled: {error}".splitlines()[0], stacklevel=2)
    return _library(lowered, inputs, {}, "torch")


def lower(graph: fx.GraphModule, examples: list[Tensor]) -> tuple[fx.GraphModule, list[Tensor]]:
    """The graph in aten operators, gradients included, and its inputs as fake tensors.

    The only mutations are copies into inputs at the end.
    """
    from functorch.compile import make_boxed_func  # type: ignore[import-untyped]
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._inductor.decomposition import select_decomp_table

    results: list[tuple[fx.GraphModule, list[Tensor]]] = []

    def keep(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        results.append((gm, list(example_inputs)))
        return make_boxed_func(gm.forward)

    aot_module_simplified(
        graph,
        examples,
        fw_compiler=keep,
        inference_compiler=keep,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
    )
    ((lowered, inputs),) = results
    if len(inputs) != len(examples):
        raise RuntimeError("two inputs of the step share memory, and one of them is written to")
    return lowered, inputs


def load(library: str) -> Graph | None:
    """The compiled step in a shared library, called without torch's Python code; None if it cannot be loaded."""
    try:
        run: Graph = torch._C._aoti.AOTIModelContainerRunnerCpu(library, 1).run
    except RuntimeError:
        return None
    return run


def compile_in_memory(graph: fx.GraphModule, examples: list[Tensor]) -> Built:
    """As `torch.compile` does, for GPUs."""
    from torch._inductor.compile_fx import compile_fx

    compiled: Any = compile_fx(graph, examples, config_patches=_supported({"size_asserts": False}))
    return Built(lambda inputs: compiled(*inputs), "torch", None)


def _library(graph: fx.GraphModule, inputs: list[Tensor], options: Mapping[str, Any], kernels: str) -> Built:
    """From the cache, or built."""
    cache, digest = Cache(), graph_digest(graph, inputs)
    with cache.lock(digest):  # so that processes that start together compile only once
        if (path := cache.path(digest)) and (run := load(path)):
            return Built(run, kernels, digest)
        with TemporaryDirectory() as scratch:
            built = _build(graph, inputs, scratch, options)
            activity.builds += 1
            if (kept := cache.store(digest, built)) and (run := load(kept)):
                return Built(run, kernels, digest)
            if run := load(built):
                return Built(run, kernels, None)
    raise RuntimeError("the compiled step cannot be loaded")


def _build(graph: fx.GraphModule, inputs: list[Tensor], scratch: str, options: Mapping[str, Any]) -> str:
    from torch._inductor.compile_fx import compile_fx_aot

    optional = {
        "size_asserts": False,
        "aot_inductor.precompile_headers": False,  # takes longer than it saves, and 500 MB of disk
    }
    settings = {"aot_inductor.output_path": f"{scratch}/step.so", **_supported(optional), **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch warns about its own code
        return str(compile_fx_aot(graph, [*inputs], config_patches=settings))


def _supported(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options of inductor that this torch has."""
    from torch._inductor import config

    def exists(name: str) -> bool:
        section, _, option = name.rpartition(".")
        return hasattr(getattr(config, section, None) if section else config, option)

    return {name: value for name, value in options.items() if exists(name)}
