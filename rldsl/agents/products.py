"""Matrix products of compiled steps on the tiles of a processor (Intel AMX), where it has them: as exact as in float32
(`tiles.h` says how), and faster."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
from copy import deepcopy
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx
from torch.torch_version import TorchVersion

HEADER = Path(__file__).with_name("tiles.h")
SWITCH = "RLDSL_TILES"
"""An environment variable: 0 leaves all products to torch."""

MULTIPLES = (32, 32, 16)
"""Rows, depth and columns come by so many."""
WORTH = 2**23
"""Multiplications from which a product is faster on tiles, if its numbers are used often enough."""
OFTEN = 64
"""Each number is split before it is multiplied: so often, on average, it must be multiplied then."""
SHARE = 0.5
"""Of all multiplications of a step: where fewer are on tiles, the processor puts them to sleep in between, and waking
them takes as long as a product."""

torch.library.define("rldsl::product", "(Tensor a, Tensor b) -> Tensor")
torch.library.impl("rldsl::product", "CompositeExplicitAutograd", torch.bmm)
PRODUCT = torch.ops.rldsl.product.default
"""What a compiled step does on tiles."""


@torch.library.register_fake("rldsl::product")
def _shape(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]))


def onto_tiles(graph: fx.GraphModule) -> fx.GraphModule:
    """A lowered graph with those of its products on tiles that gain by it; itself if there are none."""
    products = graph.graph.find_nodes(op="call_function", target=torch.ops.aten.bmm.default) if have_tiles() else []
    operands = {node.name: [argument.meta["val"] for argument in node.args] for node in products}
    gaining = {name: multiplications(*pair) for name, pair in operands.items() if suits(*pair)}
    if not gaining or sum(gaining.values()) < SHARE * sum(multiplications(*pair) for pair in operands.values()):
        return graph
    tiled = deepcopy(graph)
    for node in tiled.graph.nodes:
        if node.name in gaining:
            node.target = PRODUCT
    tiled.recompile()
    return tiled


def tile_settings() -> dict[str, Any]:
    """What inductor must know to compile such a graph.

    It writes these words between `extern` and a semicolon, so the code becomes part of the step's library.
    """
    return {"aot_inductor.custom_ops_to_c_shims": {PRODUCT: [f'"C++" {{\n#include "{HEADER}"\n}}']}}


def suits(a: Tensor, b: Tensor) -> bool:
    """Whether the product of `[M, rows, depth]` and `[M, depth, columns]` is faster on tiles."""
    sizes = rows, depth, columns = (*a.shape[1:], b.shape[2])
    return (
        all(one.dtype == torch.float32 and one.device.type == "cpu" and 1 in one.stride()[1:] for one in (a, b))
        and all(size % multiple == 0 for size, multiple in zip(sizes, MULTIPLES, strict=True))
        and prod(sizes) >= max(WORTH, OFTEN * depth * (rows + columns))
    )


def multiplications(a: Tensor, b: Tensor) -> int:
    return a.numel() * b.shape[2]


def tiles_digest() -> str:
    """Of the code that products are done with; nothing where it is torch's."""
    return hashlib.sha256(HEADER.read_bytes()).hexdigest() if have_tiles() else ""


def have_tiles() -> bool:
    return os.environ.get(SWITCH) != "0" and _permitted()


@cache
def _permitted() -> bool:
    """Asks Linux for the tiles, which it gives to a process only on request."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or torch.__version__ < TorchVersion("2.8"):
        return False
    if not {"amx_tile", "amx_bf16", "avx512bw"} <= _flags():
        return False
    arch_prctl, request_permission, tile_data = 158, 0x1023, 18
    return ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data) == 0


def _flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}
