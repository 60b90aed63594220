"""Products on the tiles of a processor: as exact as in float32, and only where they are faster."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx

from rldsl.agents import products
from rldsl.agents.compiled import CompiledStep
from rldsl.agents.libraries import graph_digest
from rldsl.agents.products import PRODUCT, SWITCH, have_tiles, onto_tiles, suits, tiles_digest

needs_tiles = pytest.mark.skipif(
    not (have_tiles() and shutil.which("g++")),
    reason="PRODUCTS ON TILES ARE NOT TESTED: this machine has none, or no g++",
)
DEEP = 160
"""More than one slice of the depth, and less than two."""


class Products:
    """One of each kind, of two members: rows or columns side by side in memory, on the left and on the right."""

    def all(self, a: Tensor, b: Tensor, across: Tensor, along: Tensor) -> Tensor:
        return torch.stack([a @ b, across.mT @ b, a @ along.mT, across.mT @ along.mT], 1)


def operands(members: int = 2, rows: int = 288, columns: int = 208) -> list[Tensor]:
    random = torch.Generator().manual_seed(0)
    shapes = [(rows, DEEP), (DEEP, columns), (DEEP, rows), (columns, DEEP)]
    return [torch.randn(members, *shape, generator=random) for shape in shapes]


def on_tiles(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tensor]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return CompiledStep(Products().all)


def error(got: Tensor, exact: Tensor) -> float:
    return float((got - exact).square().mean().sqrt() / exact.square().mean().sqrt())


@needs_tiles
def test_products_on_tiles_are_as_exact_as_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = on_tiles(tmp_path, monkeypatch)
    plain = operands()
    spread = [one * torch.exp(4 * torch.randn_like(one)) for one in plain]  # from 1e-8 to 1e8
    for given in (plain, spread, [one * 1e-15 for one in plain], [one.relu() for one in plain]):
        exact = Products().all(*(one.double() for one in given))
        theirs = error(Products().all(*given).double(), exact)
        assert error(step(*given).double(), exact) <= max(theirs, 2e-7)
    whole = [torch.randint(-300, 300, one.shape).float() for one in plain]
    assert torch.equal(step(*whole), Products().all(*whole)), "whole numbers up to 2^24 are exact"
    library = next((tmp_path / "rldsl" / "compiled").glob("*.so"))
    assert b"aoti_torch_cpu_product" in library.read_bytes(), "they were not done on tiles"


@needs_tiles
def test_what_is_no_number_stays_none_and_in_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, given = on_tiles(tmp_path, monkeypatch), operands()
    expected = step(*given).clone()
    given[0][1, 7, 3] = torch.nan
    given[0][0, 9, 0] = torch.inf
    got = step(*given)
    touched = torch.zeros_like(got, dtype=torch.bool)
    touched[1, [0, 2], 7] = touched[0, [0, 2], 9] = True
    assert not got[touched].isfinite().any()
    assert torch.equal(got[~touched], expected[~touched])


@needs_tiles
def test_a_compiler_that_does_not_know_tiles_leaves_products_to_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "tiles.h"
    broken.write_text("#error this compiler is older than the processor\n")
    monkeypatch.setattr(products, "HEADER", broken)
    given = operands()
    torch.testing.assert_close(on_tiles(tmp_path, monkeypatch)(*given), Products().all(*given), rtol=1e-4, atol=1e-4)


LARGE, SMALL, NARROW = (1, 256, 256), (1, 32, 32), (16, 64, 64)
"""Of four narrow ones, the squares have as many multiplications as that of the large one."""


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (torch.zeros(LARGE), torch.zeros(LARGE), True),
        (torch.zeros(LARGE).mT, torch.zeros(LARGE).mT, True),
        (torch.zeros(3, 256, 512), torch.zeros(3, 512, 96), True),
        (torch.zeros(1, 64, 256).mT, torch.zeros(1, 64, 128), False),
        (torch.zeros(1, 64, 512), torch.zeros(1, 512, 512), False),
        (torch.zeros(1, 64, 256), torch.zeros(1, 256, 128), False),
        (torch.zeros(1, 128, 64), torch.zeros(1, 64, 128), False),
        (torch.zeros(1, 256, 250), torch.zeros(1, 250, 256), False),
        (torch.zeros(1, 250, 256), torch.zeros(1, 256, 256), False),
        (torch.zeros(1, 256, 256), torch.zeros(1, 256, 250), False),
        (torch.zeros(1, 256, 512)[..., ::2], torch.zeros(LARGE), False),
        (torch.zeros(LARGE, dtype=torch.float64), torch.zeros(LARGE, dtype=torch.float64), False),
        (torch.zeros(LARGE, device="meta"), torch.zeros(LARGE, device="meta"), False),
    ],
)
def test_only_products_that_gain_by_it_are_done_on_tiles(a: Tensor, b: Tensor, expected: bool) -> None:
    assert suits(a, b) is expected


def graph_of(*shapes: tuple[int, int, int]) -> fx.GraphModule:
    """A square of each."""
    graph = fx.Graph()
    for number, shape in enumerate(shapes):
        given = graph.placeholder(f"given_{number}")
        given.meta["val"] = torch.zeros(shape)
        graph.call_function(torch.ops.aten.bmm.default, (given, given))
    graph.output(tuple(graph.find_nodes(op="call_function", target=torch.ops.aten.bmm.default)))
    return fx.GraphModule({}, graph)


def targets(module: fx.GraphModule) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def test_a_graph_is_changed_in_a_copy_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "have_tiles", lambda: True)
    graph = graph_of(LARGE, SMALL)
    tiled = onto_tiles(graph)
    plain = torch.ops.aten.bmm.default
    assert (targets(tiled), targets(graph)) == ([PRODUCT, plain], [plain, plain])
    inputs = [torch.randn(LARGE), torch.randn(SMALL)]
    assert graph_digest(tiled, inputs) != graph_digest(graph, inputs)
    for ours, theirs in zip(tiled(*inputs), graph(*inputs), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_step_that_seldom_needs_tiles_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "have_tiles", lambda: True)
    seldom, often = graph_of(LARGE, *[NARROW] * 5), graph_of(LARGE, *[NARROW] * 4)
    assert onto_tiles(seldom) is seldom
    assert PRODUCT in targets(onto_tiles(often))


def test_tiles_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    graph = graph_of(LARGE)
    assert onto_tiles(graph) is graph
    assert (have_tiles(), tiles_digest()) == (False, "")
