"""Named views of one flat row a member."""

import pytest
import torch

from rldsl.nets.layout import Layout, prefixed, scope

SMALL = Layout.of({"w": (2, 3), "b": (1, 3)})
JOINED = Layout.join({"actor.": SMALL, "critic.": SMALL, "log_std": Layout.of({"": (4,)})})


def test_views_share_the_memory_of_the_row_and_follow_the_order() -> None:
    flat = torch.arange(18.0).view(2, 9)
    views = SMALL.views(flat)
    assert SMALL.size == 9
    assert views["w"][1].tolist() == [[9, 10, 11], [12, 13, 14]]
    assert views["b"][0].tolist() == [[6, 7, 8]]
    flat[1, 0] = -1
    assert views["w"][1, 0, 0] == -1


def test_flatten_undoes_views() -> None:
    flat = torch.randn(3, JOINED.size)
    assert torch.equal(JOINED.flatten(JOINED.views(flat)), flat)


def test_gradients_flow_back_into_the_row() -> None:
    flat = torch.randn(2, 9, requires_grad=True)
    SMALL.views(flat)["b"].square().sum().backward()
    expected = torch.cat((torch.zeros(2, 6), 2 * flat.detach()[:, 6:]), 1)
    assert flat.grad is not None and torch.equal(flat.grad, expected)


def test_a_slice_covers_what_begins_with_the_prefix() -> None:
    assert JOINED.slice_of("critic.") == slice(9, 18)
    assert JOINED.slice_of("actor.b") == slice(6, 9)
    assert JOINED.slice_of("") == slice(0, 22)


def test_a_slice_of_nothing_or_of_scattered_parameters_is_refused() -> None:
    with pytest.raises(KeyError, match="critics"):
        JOINED.slice_of("critics.")
    scattered = Layout.of({"a.x": (1,), "b.x": (1,), "a.y": (1,)})
    with pytest.raises(ValueError, match="not contiguous"):
        scattered.slice_of("a.")


def test_coefficients_by_prefix() -> None:
    rates = JOINED.per_parameter(torch.tensor([1.0, 2.0]), {"critic.": torch.tensor([5.0, 6.0])})
    assert rates.shape == (2, 22)
    assert rates[1].tolist() == [2.0] * 9 + [6.0] * 9 + [2.0] * 4


def test_scope_undoes_prefixed() -> None:
    assert scope(prefixed("a.", {"x": 1}) | {"b.x": 2}, "a.") == {"x": 1}
