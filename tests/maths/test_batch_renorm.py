"""Batch renormalisation against its plain definition, batch normalisation and numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from rldsl.maths.batch_renorm import State, batch_renorm_eval, batch_renorm_train


def plain(x: Tensor, mean: Tensor, var: Tensor, r_max: float, d_max: float, eps: float) -> Tensor:
    """One member's batch `[B, F]`, item by item, after the warm-up (Ioffe 2017, algorithm 1)."""
    result = torch.zeros_like(x)
    for feature in range(x.shape[1]):
        items = [float(one) for one in x[:, feature]]
        center = sum(items) / len(items)
        std = math.sqrt(sum((one - center) ** 2 for one in items) / len(items) + eps)
        running = math.sqrt(float(var[feature]) + eps)
        r = min(max(std / running, 1 / r_max), r_max)
        d = min(max((center - float(mean[feature])) / running, -d_max), d_max)
        for row, one in enumerate(items):
            result[row, feature] = (one - center) / std * r + d
    return result


def initial_state(members: int, features: int) -> State:
    return {
        "mean": torch.zeros(members, features),
        "var": torch.ones(members, features),
        "batches": torch.zeros(members),
    }


def random_state(members: int, features: int, batches: float) -> State:
    random = torch.Generator().manual_seed(1)
    mean = torch.randn(members, features, generator=random)
    return {"mean": mean, "var": mean.square() + 0.01, "batches": torch.full((members,), batches)}


def batch(members: int = 3, items: int = 16, features: int = 5, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    scale = torch.rand(members, 1, features, generator=random) * 20
    return torch.randn(members, items, features, generator=random) * scale + 3 * scale.flip(2)


def test_it_follows_its_definition() -> None:
    x, state = batch(), random_state(3, 5, 100)
    got, _ = batch_renorm_train(x, state, warmup=100)
    for member in range(3):
        want = plain(x[member], state["mean"][member], state["var"][member], 3.0, 5.0, 1e-3)
        torch.testing.assert_close(got[member], want, rtol=1e-4, atol=1e-4)


def test_by_hand() -> None:
    # mean 3, var 4, std 2; running mean 1, std 1: r = 2, d = 2. (x - 3) / 2 * 2 + 2 = x - 1, as by the running ones
    x, state = torch.tensor([[[1.0], [5.0]]]), {**initial_state(1, 1), "mean": torch.ones(1, 1)}
    got, after = batch_renorm_train(x, state, eps=0.0, momentum=0.1, warmup=0)
    torch.testing.assert_close(got, torch.tensor([[[0.0], [4.0]]]))
    torch.testing.assert_close(got, batch_renorm_eval(x, state, eps=0.0))
    # r <= 1.5, d <= 0.5: (x - 3) / 2 * 1.5 + 0.5
    got, _ = batch_renorm_train(x, state, eps=0.0, r_max=1.5, d_max=0.5, warmup=0)
    torch.testing.assert_close(got, torch.tensor([[[-1.0], [2.0]]]))
    torch.testing.assert_close(after["mean"], torch.tensor([[1.2]]))  # 1 + .1 * (3 - 1)
    torch.testing.assert_close(after["var"], torch.tensor([[1.3]]))  # 1 + .1 * (4 - 1)
    assert after["batches"] == 1
    assert state["mean"] == 1 and state["batches"] == 0, "what was given must not change"


def test_it_is_plain_batch_normalisation_until_it_switches_for_each_member() -> None:
    x, state = batch(), random_state(3, 5, 99)
    state["batches"] = torch.tensor([98.0, 99.0, 100.0])
    first, state = batch_renorm_train(x, state, warmup=100)
    second, _ = batch_renorm_train(x, state, warmup=100)
    for member in range(3):
        normal = torch.nn.functional.batch_norm(x[member], None, None, training=True, eps=1e-3)
        for got, cold in ((first, member < 2), (second, member < 1)):
            assert torch.allclose(got[member], normal, atol=1e-5) == cold


def test_the_running_statistics_approach_those_of_the_data() -> None:
    state = initial_state(1, 2)
    for seed in range(600):
        x = torch.randn(1, 64, 2, generator=torch.Generator().manual_seed(seed)) * torch.tensor([2.0, 0.5]) + 3
        _, state = batch_renorm_train(x, state)
    torch.testing.assert_close(state["mean"], torch.full((1, 2), 3.0), rtol=0.03, atol=0.0)
    torch.testing.assert_close(state["var"], torch.tensor([[4.0, 0.25]]), rtol=0.05, atol=0.0)


def test_no_gradient_flows_into_the_correction() -> None:
    x, state = batch(1, 8, 2).double(), {name: one.double() for name, one in random_state(1, 2, 0).items()}

    def by_hand(x: Tensor) -> Tensor:
        mean, std = x.mean(1, keepdim=True), (x.var(1, correction=0, keepdim=True) + 1e-3).sqrt()
        running = (state["var"] + 1e-3).sqrt()
        r = (std / running).clamp(1 / 3, 3.0).detach()
        d = ((mean - state["mean"]) / running).clamp(-5.0, 5.0).detach()
        return ((x - mean) / std * r + d).square().sum()

    def ours(x: Tensor) -> Tensor:
        return batch_renorm_train(x, state, warmup=0)[0].square().sum()

    torch.testing.assert_close(torch.func.grad(ours)(x), torch.func.grad(by_hand)(x))


def test_members_do_not_mix_and_items_only_in_training() -> None:
    x, state = batch(2), random_state(2, 5, 0)
    before = batch_renorm_train(x, state, warmup=0)
    x[0] = torch.nan
    after = batch_renorm_train(x, state, warmup=0)
    torch.testing.assert_close(before[0][1], after[0][1], rtol=0, atol=0)
    torch.testing.assert_close(before[1]["var"][1], after[1]["var"][1], rtol=0, atol=0)
    x = batch(2)
    torch.testing.assert_close(batch_renorm_eval(x, state)[:, 3:4], batch_renorm_eval(x[:, 3:4], state))


@pytest.mark.parametrize("warmup", [0, 100])
def test_it_compiles_whole_inside_a_gradient(warmup: int) -> None:
    x, state = batch(2), random_state(2, 5, 50)

    def step(scale: Tensor, x: Tensor, state: State) -> tuple[Tensor, State]:
        def loss(scale: Tensor) -> tuple[Tensor, State]:
            normal, after = batch_renorm_train(x * scale.unsqueeze(1), state, warmup=warmup)
            return normal.pow(3).sum(), after

        return torch.func.grad(loss, has_aux=True)(scale)

    scale = torch.rand(2, 5, generator=torch.Generator().manual_seed(0)) + 0.5
    expected, compiled = step(scale, x, state), torch.compile(step, fullgraph=True, backend="eager")(scale, x, state)
    torch.testing.assert_close(compiled, expected)
