"""Matrix products of compiled steps by our own code, which is faster than torch's: on vectors, without the zeros that a
relu leaves (`vectors.h`), or on tiles (`tiles.h`). Both are as exact as float32."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.torch_version import TorchVersion

aten = torch.ops.aten
FOLDER = Path(__file__).parent
"""Where the code is that inductor includes."""
SWITCH = "RLDSL_PRODUCTS"
"""An environment variable: `torch` leaves all products to torch, `vectors` leaves tiles out."""

TILE_MULTIPLES = (32, 32, 16)
"""Rows, depth and columns come by so many."""
TILES_WORTH = 2**23
"""Multiplications from which a product is faster on tiles, if its numbers are used often enough."""
OFTEN = 64
"""Each number is split before it is multiplied: so often, on average, it must be multiplied then."""
SHARE = 0.5
"""Of all multiplications of a step: where fewer are on tiles, the processor puts them to sleep in between, and waking
them takes as long as a product."""


def _define(name: str, arguments: str, eager: Callable[..., Tensor]) -> OpOverload:
    """An operator that is what torch does, until a compiled step has it in its own code."""
    torch.library.define(f"rldsl::{name}", f"({', '.join(f'Tensor {one}' for one in arguments.split())}) -> Tensor")
    torch.library.impl(f"rldsl::{name}", "CompositeExplicitAutograd", eager)
    torch.library.register_fake(f"rldsl::{name}", lambda *given: torch.empty_like(eager(*given)))
    operator: OpOverload = getattr(torch.ops.rldsl, name).default
    return operator


ON_VECTORS = _define("product_on_vectors", "a b", torch.bmm)
LAYER = _define("layer_on_vectors", "a b bias", lambda a, b, bias: (torch.bmm(a, b) + bias).relu())
GATED = _define("gated_on_vectors", "gate q w b", lambda gate, q, w, b: torch.bmm(torch.where(gate <= 0, 0, q * w), b))
ON_TILES = _define("product_on_tiles", "a b", torch.bmm)
HEADERS = {ON_VECTORS: "vectors.h", LAYER: "vectors.h", GATED: "vectors.h", ON_TILES: "tiles.h"}

GATED_COLUMNS = 64
"""A gated product has columns by so many, and more than twice as many."""


def with_own_products(graph: fx.GraphModule) -> fx.GraphModule:
    """A lowered graph with those of its products by our own code that gain by it; itself if there are none."""
    products = graph.graph.find_nodes(op="call_function", target=aten.bmm.default)
    operands = {node.name: [argument.meta["val"] for argument in node.args] for node in products}
    chosen = _on_vectors(operands) | _on_tiles(operands)
    if not chosen:
        return graph
    changed = deepcopy(graph)
    for node in changed.graph.nodes:
        node.target = chosen.get(node.name, node.target)
    for node in changed.graph.find_nodes(op="call_function", target=aten.relu.default):
        _join(node)
    for node in changed.graph.find_nodes(op="call_function", target=ON_VECTORS):
        _gate(node)
    changed.recompile()
    return changed


def _join(relu: fx.Node) -> None:
    """Makes one operation of a relu, the bias below it and a product on vectors below that, if these are there for
    nothing else: the sum is activated before it leaves the registers."""
    add: Any = relu.args[0]
    product, bias = add.args if add.target == aten.add.Tensor and len(add.args) == 2 else (None, None)
    if getattr(product, "target", None) != ON_VECTORS or not isinstance(bias, fx.Node):
        return
    members, _, columns = product.meta["val"].shape
    seen = bias.meta["val"]
    if len(add.users) == len(product.users) == 1 and seen.shape == (members, 1, columns) and seen.stride(2) == 1:
        relu.target, relu.args = LAYER, (*product.args, bias)
        for unused in (add, product):
            relu.graph.erase_node(unused)


def _gate(product: fx.Node) -> None:
    """Of the gradient that a relu lets pass from a single output, where(gate <= 0, 0, q * w), the gate, q and w are all
    that its product with a matrix needs."""
    passed, b = product.args
    match _call(passed, aten.where.self):
        case [condition, zero, outer] if _call(zero, aten.scalar_tensor.default)[:1] == [0]:
            compared, factors = _call(condition, aten.le.Scalar), _call(outer, aten.mul.Tensor)
        case _:
            return
    factors = [(_call(one, aten.expand.default) or [one])[0] for one in factors]
    if len(compared) != 2 or compared[1] != 0 or len(factors) != 2:
        return
    given = [compared[0], *factors, b]
    if all(isinstance(one, fx.Node) for one in given) and _suits_gates(*(one.meta["val"] for one in given)):
        product.target, product.args = GATED, tuple(given)


def _suits_gates(gate: Tensor, q: Tensor, w: Tensor, b: Tensor) -> bool:
    members, rows, depth = gate.shape
    columns = b.shape[2]
    return (
        (tuple(q.shape), tuple(w.shape)) == ((members, rows, 1), (members, 1, depth))
        and gate.stride(2) == 1
        and columns % GATED_COLUMNS == 0
        and columns > 2 * GATED_COLUMNS
    )


def _call(node: Any, target: OpOverload) -> list[Any]:
    """The arguments of a node that calls this; of any other there are none."""
    return list(node.args) if isinstance(node, fx.Node) and node.target == target else []


def _on_vectors(operands: dict[str, list[Tensor]]) -> dict[str, OpOverload]:
    suiting = [name for name, pair in operands.items() if have_vectors() and suits_vectors(*pair)]
    return dict.fromkeys(suiting, ON_VECTORS)


def _on_tiles(operands: dict[str, list[Tensor]]) -> dict[str, OpOverload]:
    gaining = {name: _size(*pair) for name, pair in operands.items() if have_tiles() and suits_tiles(*pair)}
    enough = sum(gaining.values()) >= SHARE * sum(_size(*pair) for pair in operands.values())
    return dict.fromkeys(gaining, ON_TILES) if enough else {}


def settings(graph: fx.GraphModule) -> dict[str, Any]:
    """What inductor must know to compile such a graph.

    It writes these words between `extern` and a semicolon, so the code becomes part of the step's library.
    """
    used = {
        operator: header
        for operator, header in HEADERS.items()
        if graph.graph.find_nodes(op="call_function", target=operator)
    }
    shims = {operator: [f'"C++" {{\n#include "{FOLDER / header}"\n}}'] for operator, header in used.items()}
    return {"aot_inductor.custom_ops_to_c_shims": shims}


def suits_vectors(a: Tensor, b: Tensor) -> bool:
    """Whether the product of `[M, rows, depth]` and `[M, depth, columns]` can be done on vectors."""
    return all(one.dtype == torch.float32 and one.device.type == "cpu" and 1 in one.stride()[1:] for one in (a, b))


def suits_tiles(a: Tensor, b: Tensor) -> bool:
    """Whether it is faster on tiles."""
    sizes = rows, depth, columns = (*a.shape[1:], b.shape[2])
    return (
        suits_vectors(a, b)
        and all(size % multiple == 0 for size, multiple in zip(sizes, TILE_MULTIPLES, strict=True))
        and prod(sizes) >= max(TILES_WORTH, OFTEN * depth * (rows + columns))
    )


def _size(a: Tensor, b: Tensor) -> int:
    """The number of multiplications."""
    return a.numel() * b.shape[2]


def code_digest() -> str:
    """Of the code that products are done with; nothing where it is torch's."""
    if not have_vectors():
        return ""
    digest = hashlib.sha256(b"tiles" if have_tiles() else b"vectors")
    for header in sorted(FOLDER.glob("*.h")):
        digest.update(header.read_bytes())
    return digest.hexdigest()


def have_vectors() -> bool:
    return os.environ.get(SWITCH) != "torch" and _can_use_vectors()


def have_tiles() -> bool:
    return have_vectors() and os.environ.get(SWITCH) != "vectors" and _may_use_tiles()


@cache
def _can_use_vectors() -> bool:
    """AVX-512, and a torch whose compiler takes the code of others."""
    known = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    return known and torch.__version__ >= TorchVersion("2.8") and {"avx512f", "avx512bw", "avx512vl"} <= _flags()


@cache
def _may_use_tiles() -> bool:
    """Asks Linux for the tiles, which it gives to a process only on request."""
    if not {"amx_tile", "amx_bf16"} <= _flags():
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    return ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0


def _flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}
