"""The zero-skipping products: as exact as float32 allows on any input, and chosen only where they apply."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx

from rldsl.compile import Compilation, kernels
from rldsl.compile.cache import graph_digest
from rldsl.compile.kernels import BMM, LINEAR_RELU, SWITCH, available, source_digest, suits, with_sparse_products

aten = torch.ops.aten
Matrices = dict[str, Tensor]
needs_avx512 = pytest.mark.skipif(
    not (available() and shutil.which("g++")),
    reason="THE AVX-512 KERNELS ARE NOT TESTED: this machine has no AVX-512 or no g++, or they are switched off",
)
MEMBERS = 2
SHAPES = [
    (64, 256, 128),  # a single panel of B, read in place
    (40, 300, 192),  # several panels, and more than one block of the depth
    (16, 600, 80),
    (33, 17, 50),  # no multiple of anything
    (5, 100, 130),
    (9, 2, 64),
    (1, 16, 5),
    (70, 40, 1),
    (70, 40, 2),
    (7, 19, 3),
    (130, 33, 4),
]
"""Rows, depth and columns."""


class Products:
    """The product of each shape with four layouts: rows or columns contiguous, in A and in B."""

    def all(self, rows: Matrices, columns: Matrices) -> Tensor:
        return torch.cat([self.one(a, b, bias).flatten(1) for a, b, bias in layouts(rows, columns)], 1)

    def one(self, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        return torch.bmm(a, b)


class Layers(Products):
    """The same products as layers with a bias and a ReLU."""

    def one(self, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
        return (torch.bmm(a, b) + bias).relu()


def layouts(rows: Matrices, columns: Matrices) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for left, right in zip(*2 * [iter(rows)], strict=True):
        for a in (rows[left], columns[left].mT):
            for b in (columns[right].mT, rows[right]):
                yield a, b, rows[right][:, :1]


def matrices(seed: int = 0) -> list[Matrices]:
    random = torch.Generator().manual_seed(seed)
    sizes = {f"{side} {shape}": shape[i : i + 2] for shape in SHAPES for i, side in enumerate(("left", "right"))}
    rows = {name: torch.randn(MEMBERS, *size, generator=random) for name, size in sizes.items()}
    return [rows, {name: torch.randn(MEMBERS, *size[::-1], generator=random) for name, size in sizes.items()}]


def changed(given: list[Matrices], change: Callable[[Tensor], Tensor], side: str = "") -> list[Matrices]:
    return [{name: change(x) if name.startswith(side) else x for name, x in some.items()} for some in given]


@pytest.fixture(scope="module")
def compiled_steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Callable[..., Tensor]]]:
    """All products and all layers, compiled once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv(SWITCH, raising=False)
        steps = {}
        for name, products in (("products", Products()), ("layers", Layers())):
            compilation = Compilation(True)
            steps[name] = compilation.compiled(products.all)
            steps[name](*matrices())
            assert compilation.notes() == {"compiled": True, "kernels": "avx512"}
        yield steps  # type: ignore[misc]


@pytest.fixture
def products(compiled_steps: dict[str, Callable[..., Tensor]]) -> Callable[..., Tensor]:
    return compiled_steps["products"]


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def some_zeros(x: Tensor) -> Tensor:
    """Three quarters of the odd rows are zero, half of the even ones."""
    return x.relu() * (torch.arange(x.shape[1])[:, None] % 2 + torch.rand_like(x)).round().clamp(max=1)


def cancelling(x: Tensor) -> Tensor:
    """Neighbours along both dimensions nearly cancel."""
    rows, columns = (torch.arange(size) % 2 * 2 - 1 for size in x.shape[1:])
    return (1 + 1e-6 * x) * rows[:, None] * columns


def zero_lines(x: Tensor) -> Tensor:
    zeroed = x.clone()
    zeroed[:, ::3] = 0
    zeroed[:, :, ::4] = 0
    return zeroed


INPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "dense": lambda x: x,
    "relu": torch.relu,
    "mostly zero": some_zeros,
    "all zero": torch.zeros_like,
    "zero rows and columns": zero_lines,
    "magnitudes from 1e-8 to 1e8": lambda x: x * torch.exp(4 * torch.randn_like(x)),
    "sparse, magnitudes from 1e-8 to 1e8": lambda x: x.relu() * torch.exp(4 * torch.randn_like(x)),
    "cancellation": cancelling,
    "sparse cancellation": lambda x: cancelling(x) * (torch.rand_like(x) < 0.5),
    "large": lambda x: x * 1e17,
    "large and sparse": lambda x: x.relu() * 1e17,
    "denormal products": lambda x: x.relu() * 1e-20,
    "denormal": lambda x: x * 1e-39,
    "one huge element": lambda x: torch.where(torch.arange(x[0].numel()).view(x.shape[1:]) == 1, 1e15, x.relu()),
}


@needs_avx512
@pytest.mark.parametrize("change", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_have_the_error_of_float32(
    products: Callable[..., Tensor],
    threads: int,
    change: Callable[[Tensor], Tensor],
    set_threads: Callable[[int], None],
) -> None:
    """|c - exact| <= depth * 2^-23 * |a| |b|, element by element: the bound of a sum in any order (Higham 2002)."""
    torch.manual_seed(0)
    given = changed(matrices(), change)
    exact = Products().all(*changed(given, Tensor.double))
    sizes = Products().all(*changed(given, lambda x: x.double().abs()))
    depth = torch.cat([torch.full((a.shape[1] * b.shape[2],), a.shape[2]) for a, b, _ in layouts(*given)])
    set_threads(threads)
    error = (products(*given).double() - exact).abs()
    allowed = depth * (2.0**-23 * sizes + 2.0**-126)  # products below 2^-126 may count as 0
    assert (error <= allowed).all()


@needs_avx512
def test_whole_numbers_are_exact(products: Callable[..., Tensor]) -> None:
    given = changed(matrices(), lambda x: torch.randint_like(x, -100, 100))
    assert torch.equal(products(*given), Products().all(*given)), "sums below 2^24"


@needs_avx512
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("change", [INPUTS["dense"], INPUTS["mostly zero"], INPUTS["all zero"]], ids=["-", "0s", "0"])
def test_infinity_and_nan_spread_as_in_torch(
    products: Callable[..., Tensor], side: str, value: float, change: Callable[[Tensor], Tensor]
) -> None:
    """0 * inf and 0 * nan are nan, although zeros are skipped."""
    torch.manual_seed(0)
    given = changed(matrices(), change, "left")
    for some in given:
        for name, x in some.items():
            if name.startswith(side):
                x[1, x.shape[1] // 2, x.shape[2] // 3] = value
    got, expected = products(*given), Products().all(*given)
    assert not expected.isfinite().all()
    assert torch.equal(got.isnan(), expected.isnan())
    assert torch.equal(got.isinf() * got.sign(), expected.isinf() * expected.sign())
    finite = expected.isfinite()
    torch.testing.assert_close(got[finite], expected[finite], rtol=1e-4, atol=1e-4)


@needs_avx512
@pytest.mark.parametrize("change", [INPUTS["dense"], INPUTS["mostly zero"]], ids=["dense", "sparse"])
def test_a_layer_is_a_product_with_bias_and_relu(
    compiled_steps: dict[str, Callable[..., Tensor]], change: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(0)
    given, layers = changed(matrices(), change, "left"), compiled_steps["layers"]
    torch.testing.assert_close(layers(*given), Layers().all(*given), rtol=1e-4, atol=1e-4)
    for some in given:
        next(iter(some.values()))[1, 7, 3] = torch.nan
    assert torch.equal(layers(*given).isnan(), Layers().all(*given).isnan()), "relu(nan) is nan"


@needs_avx512
@pytest.mark.filterwarnings("ignore:the AVX-512 kernels of rldsl cannot be compiled")
def test_if_the_kernels_cannot_be_compiled_torch_multiplies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tmp_path / "sparse_gemm.h"
    header.write_text("#error this compiler does not know AVX-512\n")
    monkeypatch.setattr(kernels, "HEADER", header)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)
    compilation, given = Compilation(True), [torch.randn(2, 20, 30), torch.randn(2, 30, 64)]
    step = compilation.compiled(Square().product)
    torch.testing.assert_close(step(*given), torch.bmm(*given), rtol=1e-4, atol=1e-4)
    assert compilation.notes() == {"compiled": True, "kernels": "torch"}


class Square:
    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.bmm(a, b)


# --- Which products of a graph ---------------------------------------------------------

SMALL = (1, 32, 32)
TORCH_BMM, ADD, RELU = aten.bmm.default, aten.add.Tensor, aten.relu.default


@pytest.fixture
def supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(kernels, "_supported", lambda: True)


def targets(module: fx.GraphModule) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def layer_graph(*, shared: bool = False, wide: bool = False) -> fx.GraphModule:
    """relu(a a + bias); a product with another use, or a bias for each row, cannot be fused."""
    graph = fx.Graph()
    a, bias = graph.placeholder("a"), graph.placeholder("bias")
    a.meta["val"], bias.meta["val"] = torch.zeros(SMALL), torch.zeros(SMALL if wide else (1, 1, 32))
    product = graph.call_function(TORCH_BMM, (a, a))
    product.meta["val"] = torch.zeros(SMALL)
    relu = graph.call_function(RELU, (graph.call_function(ADD, (product, bias)),))
    graph.output((relu, product) if shared else (relu,))
    return fx.GraphModule({}, graph)


@pytest.mark.usefixtures("supported")
@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (layer_graph(), [LINEAR_RELU]),
        (layer_graph(shared=True), [BMM, ADD, RELU]),
        (layer_graph(wide=True), [BMM, ADD, RELU]),
    ],
)
def test_products_are_replaced_in_a_copy_and_fused_if_they_have_no_other_use(
    graph: fx.GraphModule, expected: list[Any]
) -> None:
    changed_graph = with_sparse_products(graph)
    assert (targets(changed_graph), targets(graph)) == (expected, [TORCH_BMM, ADD, RELU])
    inputs = [torch.randn(SMALL), torch.randn(1, 1, 32)]
    assert graph_digest(changed_graph, inputs) != graph_digest(graph, inputs)
    for ours, theirs in zip(changed_graph(*inputs), graph(*inputs), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (torch.zeros(SMALL), True),
        (torch.zeros(SMALL).mT, True),
        (torch.zeros(1, 32, 64)[..., ::2], False),
        (torch.zeros(SMALL, dtype=torch.float64), False),
        (torch.zeros(SMALL, device="meta"), False),
    ],
)
def test_the_kernels_take_float32_with_contiguous_rows_or_columns(matrix: Tensor, expected: bool) -> None:
    assert (suits(matrix, matrix), suits(torch.zeros(SMALL), matrix)) == (expected, expected)


def test_without_avx512_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_supported", lambda: False)
    graph = layer_graph()
    assert with_sparse_products(graph) is graph
    assert source_digest() == ""
    assert Compilation(True).notes()["kernels"] == "torch"


@pytest.mark.usefixtures("supported")
def test_the_kernels_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = layer_graph()
    assert source_digest() != ""
    assert Compilation(True).notes()["kernels"] == "avx512"
    assert Compilation(True, "cuda").notes()["kernels"] == "torch"
    monkeypatch.setenv(SWITCH, "torch")
    assert with_sparse_products(graph) is graph
    assert source_digest() == ""
    assert Compilation(True).notes()["kernels"] == "torch"
