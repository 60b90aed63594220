"""Matrix products of compiled steps by the zero-skipping AVX-512 kernels of `sparse_gemm.h`.

`RLDSL_PRODUCTS=torch` in the environment leaves all products to torch.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.torch_version import TorchVersion

aten = torch.ops.aten
HEADER = Path(__file__).parent / "sparse_gemm.h"
SWITCH = "RLDSL_PRODUCTS"


def _define(name: str, arguments: str, eager: Callable[..., Tensor]) -> OpOverload:
    """An operator with torch's own implementation; in compiled steps, inductor calls the C function of its name."""
    torch.library.define(f"rldsl::{name}", f"({', '.join(f'Tensor {one}' for one in arguments.split())}) -> Tensor")
    torch.library.impl(f"rldsl::{name}", "CompositeExplicitAutograd", eager)
    torch.library.register_fake(f"rldsl::{name}", lambda *tensors: torch.empty_like(eager(*tensors)))
    operator: OpOverload = getattr(torch.ops.rldsl, name).default
    return operator


BMM = _define("sparse_left_bmm", "a b", torch.bmm)
LINEAR_RELU = _define("sparse_left_linear_relu", "a b bias", lambda a, b, bias: (torch.bmm(a, b) + bias).relu())


def available() -> bool:
    """Whether this machine has the kernels, and they are not switched off."""
    return os.environ.get(SWITCH) != "torch" and _supported()


@cache
def _supported() -> bool:
    """AVX-512 on Linux, and a torch whose compiler can call foreign C functions."""
    linux = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    return linux and torch.__version__ >= TorchVersion("2.8") and {"avx512f", "avx512bw", "avx512vl"} <= _cpu_flags()


def _cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}


def source_digest() -> str:
    """A digest of the kernels; empty where they are not used."""
    return hashlib.sha256(HEADER.read_bytes()).hexdigest() if available() else ""


def with_sparse_products(graph: fx.GraphModule) -> fx.GraphModule:
    """A copy of a lowered graph with the kernels in place of torch's products; the graph itself if there are none."""
    products = graph.graph.find_nodes(op="call_function", target=aten.bmm.default)
    chosen = {node.name for node in products if available() and suits(*(one.meta["val"] for one in node.args))}
    if not chosen:
        return graph
    changed = deepcopy(graph)
    for node in changed.graph.nodes:
        if node.name in chosen:
            node.target = BMM
    for node in changed.graph.find_nodes(op="call_function", target=aten.relu.default):
        _fuse_layer(node)
    changed.recompile()
    return changed


def suits(a: Tensor, b: Tensor) -> bool:
    """Whether the kernels can multiply `[M, rows, depth]` by `[M, depth, columns]`: float32, rows or columns
    contiguous."""
    return all(one.dtype == torch.float32 and one.device.type == "cpu" and 1 in one.stride()[1:] for one in (a, b))


def _fuse_layer(relu: fx.Node) -> None:
    """relu(product + bias) as one operator, if product and sum have no other use: the sums are activated while they are
    in registers."""
    add: Any = relu.args[0]
    if add.target != aten.add.Tensor or len(add.args) != 2:
        return
    product, bias = add.args
    if not isinstance(product, fx.Node) or product.target != BMM or not isinstance(bias, fx.Node):
        return
    members, _, columns = product.meta["val"].shape
    value = bias.meta["val"]
    if len(add.users) == len(product.users) == 1 and value.shape == (members, 1, columns) and value.stride(2) == 1:
        relu.target, relu.args = LINEAR_RELU, (*product.args, bias)
        for unused in (add, product):
            relu.graph.erase_node(unused)


def inductor_options(graph: fx.GraphModule) -> dict[str, Any]:
    """The options with which inductor compiles a graph that has these operators.

    Inductor writes the given declaration between `extern` and a semicolon, so an include of the header, in braces,
    becomes part of the generated code.
    """
    used = [one for one in (BMM, LINEAR_RELU) if graph.graph.find_nodes(op="call_function", target=one)]
    include = f'"C++" {{\n#include "{HEADER}"\n}}'
    return {"aot_inductor.custom_ops_to_c_shims": {operator: [include] for operator in used}}
