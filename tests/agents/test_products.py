"""Products by our own code: as exact as in float32, zeros or none; and on tiles only where that is faster."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx

from rldsl.agents import products
from rldsl.agents.compiled import CompiledStep
from rldsl.agents.libraries import graph_digest
from rldsl.agents.products import (
    GATED,
    LAYER,
    ON_TILES,
    ON_VECTORS,
    SWITCH,
    code_digest,
    have_tiles,
    have_vectors,
    settings,
    suits_tiles,
    suits_vectors,
    with_own_products,
)

aten = torch.ops.aten
BMM, ADD, RELU = aten.bmm.default, aten.add.Tensor, aten.relu.default
Operands = dict[str, Tensor]
needs_vectors = pytest.mark.skipif(
    not (have_vectors() and shutil.which("g++")),
    reason="PRODUCTS ON VECTORS ARE NOT TESTED: this machine has no AVX-512, or no g++",
)
needs_tiles = pytest.mark.skipif(
    not (have_tiles() and shutil.which("g++")),
    reason="PRODUCTS ON TILES ARE NOT TESTED: this machine has none, or no g++",
)
KINDS = [pytest.param("vectors", marks=needs_vectors), pytest.param("tiles", marks=needs_tiles)]
SHAPES = {
    "vectors": [
        (64, 256, 128),  # one panel of the right matrix, read where it is
        (40, 300, 192),  # several panels, and more than one block of the depth
        (16, 600, 80),
        (33, 17, 50),  # edges everywhere
        (5, 100, 130),
        (9, 2, 64),
        (1, 16, 5),
        (70, 40, 1),
        (70, 40, 2),
        (7, 19, 3),
        (130, 33, 4),
    ],
    "tiles": [(288, 160, 208)],  # more than one slice of the depth, and less than two
}
"""Rows, depth and columns."""


class Products:
    """Of each shape one of each kind: rows or columns side by side in memory, on the left and on the right."""

    def all(self, along: Operands, across: Operands) -> Tensor:
        results = []
        for left, right in zip(*2 * [iter(along)], strict=True):
            pairs = [(a, b) for a in (along[left], across[left].mT) for b in (across[right].mT, along[right])]
            results += [self.one(a, b, along[right]).flatten(1) for a, b in pairs]
        return torch.cat(results, 1)

    def one(self, a: Tensor, b: Tensor, right: Tensor) -> Tensor:
        return torch.bmm(a, b)


class Layers(Products):
    """The same, each with a bias and a relu."""

    def one(self, a: Tensor, b: Tensor, right: Tensor) -> Tensor:
        return (torch.bmm(a, b) + right[:, :1]).relu()


def operands(kind: str, members: int = 2) -> list[Operands]:
    random = torch.Generator().manual_seed(0)
    sizes = {f"{side} {shape}": shape[i : i + 2] for shape in SHAPES[kind] for i, side in enumerate(("left", "right"))}
    along = {name: torch.randn(members, *size, generator=random) for name, size in sizes.items()}
    return [along, {name: torch.randn(members, *size[::-1], generator=random) for name, size in sizes.items()}]


def changed(given: list[Operands], change: Callable[[Tensor], Tensor], side: str = "") -> list[Operands]:
    return [{name: change(x) if name.startswith(side) else x for name, x in some.items()} for some in given]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def step(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Tensor]]:
    """All products, compiled: as long as that takes, it is done once for all tests."""
    cache = tmp_path_factory.mktemp(kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setenv(SWITCH, kind)
        step = CompiledStep(Products().all)
        step(*operands(kind))
        library = next((cache / "rldsl" / "compiled").glob("*.so"))
        assert f"aoti_torch_cpu_product_on_{kind}".encode() in library.read_bytes(), "torch did them"
        yield step


@pytest.fixture
def some_threads() -> Iterator[Callable[[int], None]]:
    """Sets how many threads torch has, for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def error(got: Tensor, exact: Tensor) -> float:
    return float((got - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def half(x: Tensor) -> Tensor:
    """Three numbers of four are 0 in some rows, half of them in others."""
    return x.relu() * (torch.arange(x.shape[1])[:, None] % 2 + torch.rand_like(x)).round().clamp(max=1)


ALLOWED = {"vectors": 4e-7, "tiles": 2e-7}
"""Relative errors: a number of 600 products, summed one after the other, has 3e-7."""
ALIKE: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: x,
    "spread": lambda x: x * torch.exp(4 * torch.randn_like(x)),  # from 1e-8 to 1e8
    "tiny": lambda x: x * 1e-15,
    "relu": torch.relu,
    "half": half,
}


@pytest.mark.parametrize("change", ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_as_exact_as_in_float32(
    step: Callable[..., Tensor],
    kind: str,
    threads: int,
    change: Callable[[Tensor], Tensor],
    some_threads: Callable[[int], None],
) -> None:
    given = changed(operands(kind), change)
    exact = Products().all(*changed(given, Tensor.double))
    theirs = error(Products().all(*given).double(), exact)
    some_threads(threads)
    assert error(step(*given).double(), exact) <= max(theirs, ALLOWED[kind])


def test_whole_numbers_are_exact(step: Callable[..., Tensor], kind: str) -> None:
    given = changed(operands(kind), lambda x: torch.randint_like(x, -100, 100))
    assert torch.equal(step(*given), Products().all(*given)), "sums up to 2^24"
    zero = changed(given, torch.zeros_like, "left")
    assert torch.equal(step(*zero), Products().all(*zero))


def test_what_is_no_number_stays_none_and_in_its_row(step: Callable[..., Tensor], kind: str) -> None:
    given = operands(kind)
    expected = step(*given).clone()
    (rows, _, columns), left = SHAPES[kind][0], next(iter(given[0]))
    given[0][left][1, 7, 3] = torch.nan
    given[0][left][0, 9, 0] = torch.inf
    got = step(*given)
    touched = torch.zeros_like(got, dtype=torch.bool)
    first = touched[:, : 4 * rows * columns].view(2, 4, rows, columns)  # two of these have the left matrix along
    first[1, :2, 7] = first[0, :2, 9] = True
    assert not got[touched].isfinite().any()
    assert torch.equal(got[~touched], expected[~touched])


@needs_vectors
def test_a_layer_is_one_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(SWITCH, "vectors")
    compiled: list[Any] = []
    monkeypatch.setattr(products, "settings", lambda graph: compiled.extend(targets(graph)) or settings(graph))
    layers, given = CompiledStep(Layers().all), operands("vectors")
    for change in (ALIKE["plain"], ALIKE["half"]):
        some = changed(given, change, "left")
        torch.testing.assert_close(layers(*some), Layers().all(*some), rtol=1e-4, atol=1e-4)
    left = next(iter(given[0]))
    given[0][left][1, 7, 3] = torch.nan
    assert torch.equal(layers(*given).isnan(), Layers().all(*given).isnan()), "a relu lets through what is no number"
    assert compiled.count(LAYER) == 4 * len(SHAPES["vectors"])


class Gates:
    """What a relu lets pass of the gradient of a single output, times a matrix."""

    def all(self, gate: Tensor, q: Tensor, w: Tensor, b: Tensor, across: Tensor) -> Tensor:
        passed = torch.where(gate <= 0, 0, q * w)
        return torch.cat([torch.bmm(passed, b), torch.bmm(passed, across.mT)], 1)


@needs_vectors
@pytest.mark.parametrize("threads", [1, 2])
def test_a_gated_product_is_what_passes_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, some_threads: Callable[[int], None]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(SWITCH, "vectors")
    compiled: list[Any] = []
    monkeypatch.setattr(products, "settings", lambda graph: compiled.extend(targets(graph)) or settings(graph))
    some_threads(threads)
    step, random = CompiledStep(Gates().all), torch.Generator().manual_seed(0)
    shapes = [(2, 70, 200), (2, 70, 1), (2, 1, 200), (2, 200, 192), (2, 192, 200)]
    for share in (0.0, 0.3, 0.5, 0.9, 1.0):
        gate, q, w, b, across = (torch.randn(shape, generator=random) for shape in shapes)
        gate = torch.where(torch.rand(gate.shape, generator=random) < share, gate.abs(), -gate.abs())
        gate[:, :3] = 0.0
        q[:, 3:9] = 0.0
        given = [gate, q, w, b, across]
        exact = Gates().all(*(one.double() for one in given))
        torch.testing.assert_close(step(*given).double(), exact, rtol=1e-5, atol=2e-5)
    gate[1, 20, 7] = torch.nan
    q[0, 30] = torch.nan
    assert torch.equal(step(*given).isnan(), Gates().all(*given).isnan())
    assert compiled.count(GATED) == 2


@needs_vectors
def test_a_compiler_that_cannot_compile_them_leaves_products_to_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for header in ("vectors.h", "tiles.h"):
        (tmp_path / header).write_text("#error this compiler is older than the processor\n")
    monkeypatch.setattr(products, "FOLDER", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    given = operands("tiles")
    compiled = CompiledStep(Products().all)
    torch.testing.assert_close(compiled(*given), Products().all(*given), rtol=1e-4, atol=1e-4)


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
    assert suits_tiles(a, b) is expected


def graph_of(*shapes: tuple[int, int, int]) -> fx.GraphModule:
    """A square of each."""
    graph = fx.Graph()
    for number, shape in enumerate(shapes):
        given = graph.placeholder(f"given_{number}")
        given.meta["val"] = torch.zeros(shape)
        graph.call_function(aten.bmm.default, (given, given))
    graph.output(tuple(graph.find_nodes(op="call_function", target=aten.bmm.default)))
    return fx.GraphModule({}, graph)


def targets(module: fx.GraphModule) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def layer_graph(*, shared: bool = False, wide: bool = False) -> fx.GraphModule:
    """A product, a bias and a relu; a product that is shared, or a wide bias, stands in the way of making them one."""
    graph = fx.Graph()
    a, bias = graph.placeholder("a"), graph.placeholder("bias")
    a.meta["val"], bias.meta["val"] = torch.zeros(SMALL), torch.zeros(SMALL if wide else (1, 1, 32))
    product = graph.call_function(BMM, (a, a))
    product.meta["val"] = torch.zeros(SMALL)
    relu = graph.call_function(RELU, (graph.call_function(ADD, (product, bias)),))
    graph.output((relu, product) if shared else (relu,))
    return fx.GraphModule({}, graph)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (layer_graph(), [LAYER]),
        (layer_graph(shared=True), [ON_VECTORS, ADD, RELU]),
        (layer_graph(wide=True), [ON_VECTORS, ADD, RELU]),
    ],
)
def test_a_layer_is_joined_where_its_parts_are_of_no_other_use(
    graph: fx.GraphModule, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    have(monkeypatch)
    own = with_own_products(graph)
    assert targets(own) == expected
    a, bias = torch.randn(SMALL), torch.randn(1, 1, 32)
    for ours, theirs in zip(own(a, bias), graph(a, bias), strict=True):
        torch.testing.assert_close(ours, theirs)


def gate_graph(*, columns: int = 192, compared: float = 0, depth: int = 32) -> fx.GraphModule:
    """A gated product, which may have few columns, another comparison or a wrong factor."""
    shapes = {"gate": (1, 8, 32), "q": (1, 8, 1), "w": (1, 1, depth), "b": (1, 32, columns)}
    graph = fx.Graph()
    given = {name: graph.placeholder(name) for name in shapes}
    for name, shape in shapes.items():
        given[name].meta["val"] = torch.zeros(shape)
    zero = graph.call_function(aten.scalar_tensor.default, (0,))
    closed = graph.call_function(aten.le.Scalar, (given["gate"], compared))
    outer = graph.call_function(aten.mul.Tensor, (given["q"], given["w"]))
    passed = graph.call_function(aten.where.self, (closed, zero, outer))
    passed.meta["val"] = torch.zeros(1, 8, 32)
    graph.output(graph.call_function(BMM, (passed, given["b"])))
    return fx.GraphModule({}, graph)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (gate_graph(), GATED),
        (gate_graph(columns=128), ON_VECTORS),
        (gate_graph(columns=200), ON_VECTORS),
        (gate_graph(compared=1), ON_VECTORS),
        (gate_graph(depth=1), ON_VECTORS),
    ],
)
def test_a_product_is_gated_only_by_a_relu(
    graph: fx.GraphModule, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    have(monkeypatch)
    assert targets(with_own_products(graph))[-1] == expected


def have(monkeypatch: pytest.MonkeyPatch, *, vectors: bool = True, tiles: bool = False) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(products, "_can_use_vectors", lambda: vectors)
    monkeypatch.setattr(products, "_may_use_tiles", lambda: tiles)


def test_a_graph_is_changed_in_a_copy_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, tiles=True)
    graph = graph_of(LARGE, SMALL)
    own = with_own_products(graph)
    assert (targets(own), targets(graph)) == ([ON_TILES, ON_VECTORS], [BMM, BMM])
    inputs = [torch.randn(LARGE), torch.randn(SMALL)]
    assert graph_digest(own, inputs) != graph_digest(graph, inputs)
    for ours, theirs in zip(own(*inputs), graph(*inputs), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_step_that_seldom_needs_tiles_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, tiles=True)
    seldom, often = graph_of(LARGE, *[NARROW] * 5), graph_of(LARGE, *[NARROW] * 4)
    assert set(targets(with_own_products(seldom))) == {ON_VECTORS}
    assert ON_TILES in targets(with_own_products(often))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (torch.zeros(SMALL), True),
        (torch.zeros(SMALL).mT, True),
        (torch.zeros(1, 32, 64)[..., ::2], False),
        (torch.zeros(SMALL, dtype=torch.float64), False),
        (torch.zeros(SMALL, device="meta"), False),
    ],
)
def test_float32_of_lines_in_memory_is_multiplied_on_vectors(one: Tensor, expected: bool) -> None:
    assert (suits_vectors(one, one), suits_vectors(torch.zeros(SMALL), one)) == (expected, expected)


def test_a_processor_without_vectors_has_no_tiles_either(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, vectors=False, tiles=True)
    graph = graph_of(LARGE)
    assert with_own_products(graph) is graph
    assert (have_tiles(), code_digest()) == (False, "")


def test_our_own_products_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, tiles=True)
    graph, digests = graph_of(LARGE), {code_digest()}
    monkeypatch.setenv(SWITCH, "vectors")
    assert targets(with_own_products(graph)) == [ON_VECTORS]
    digests.add(code_digest())
    monkeypatch.setenv(SWITCH, "torch")
    assert with_own_products(graph) is graph
    assert len(digests | {code_digest()}) == 3
