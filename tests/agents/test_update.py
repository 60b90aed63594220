"""A gradient step of all members: equal to torch.optim on a plain module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rldsl import Adam, AdamW, Optimizer, RMSprop
from rldsl.agents.update import Batch, Loss, Update
from rldsl.compile import Compilation
from rldsl.nets.layout import Layout, Params

LAYOUT = Layout.of({"weight": (3, 2), "bias": (1, 2)})
M, B = 3, 5
LR, MAX_NORM = torch.tensor([0.1, 0.01, 0.03]), torch.tensor([0.2, float("inf"), 1e3])


def squared_error(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
    predicted = torch.baddbmm(params["bias"], batch["x"], params["weight"])
    loss = coefficients["scale"] * (predicted - batch["y"]).square().flatten(1).mean(1)
    return loss, loss.unsqueeze(1)


def batches(count: int) -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(0)
    drawn = [torch.randn(M, B, 5, generator=random) for _ in range(count)]
    return [{"x": one[..., :3], "y": one[..., 3:]} for one in drawn]


def update(optimizer: Optimizer, compilation: Compilation | None = None, loss: Loss = squared_error) -> Update:
    flat = torch.randn(M, LAYOUT.size, generator=torch.Generator().manual_seed(1))
    return Update(LAYOUT, flat, optimizer, loss, compilation)


def without_biases(parameters: Iterable[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Groups of a torch optimizer: only matrices decay."""
    return [{"params": [one], "weight_decay": weight_decay if one.dim() > 1 else 0.0} for one in parameters]


SCALE = {"scale": torch.tensor([1.0, 2.0, 0.5])}
OPTIMIZERS: list[tuple[Optimizer, Callable[..., Any]]] = [
    (Adam(betas=(0.8, 0.99)), lambda p, lr: torch.optim.Adam(p, lr, betas=(0.8, 0.99), eps=1e-5)),
    (AdamW(weight_decay=0.1), lambda p, lr: torch.optim.AdamW(without_biases(p, 0.1), lr, eps=1e-5)),
    (RMSprop(alpha=0.9), lambda p, lr: torch.optim.RMSprop(p, lr, alpha=0.9, eps=1e-5)),
]


@pytest.mark.parametrize(("ours", "theirs"), OPTIMIZERS, ids=lambda one: getattr(one, "kind", ""))
def test_members_move_as_plain_modules_under_torch_do(ours: Optimizer, theirs: Callable[..., Any]) -> None:
    one = update(ours)
    modules = []
    for member in range(M):
        module = nn.Linear(3, 2)
        module.weight.data, module.bias.data = one.flat[member, :6].view(3, 2).T.clone(), one.flat[member, 6:].clone()
        modules.append((module, theirs(module.parameters(), LR[member].item())))
    for batch in batches(8):
        metrics = one(LR, MAX_NORM, SCALE, batch)
        for member, (module, optimizer) in enumerate(modules):
            optimizer.zero_grad()
            loss = SCALE["scale"][member] * (module(batch["x"][member]) - batch["y"][member]).square().mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(module.parameters(), MAX_NORM[member].item())
            optimizer.step()
            torch.testing.assert_close(metrics[member], torch.stack([loss.detach(), norm]), rtol=1e-4, atol=1e-5)
            expected = torch.cat([module.weight.detach().T.flatten(), module.bias.detach()])
            torch.testing.assert_close(one.flat[member], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", [one for one, _ in OPTIMIZERS], ids=lambda one: one.kind)
@pytest.mark.parametrize("lr", [LR, LAYOUT.per_parameter(LR, {"bias": LR / 2})], ids=["a member", "a parameter"])
def test_in_pieces_a_row_moves_as_it_does_whole(optimizer: Optimizer, lr: Tensor) -> None:
    """As in a compiled update, without the compiler."""
    whole, pieces = update(optimizer), update(optimizer, Compilation(True))
    pieces._steps = torch.no_grad()(pieces._all_steps)
    assert (len(whole.pieces(whole.flat)), len(pieces.pieces(pieces.flat))) == (1, 2)
    for batch in batches(5):
        torch.testing.assert_close(*(one(lr, MAX_NORM, SCALE, batch) for one in (whole, pieces)))
    torch.testing.assert_close(whole.flat, pieces.flat)
    for name, tensor in whole.state.items():
        torch.testing.assert_close(tensor, pieces.state[name])


@pytest.mark.parametrize("prepare", [None, lambda batch, coefficients: {**batch, "y": batch["y"] * 2}])
def test_several_steps_together_are_the_same_steps(prepare: Any) -> None:
    flat = update(Adam()).flat
    alone, together = (
        Update(LAYOUT, flat.clone(), Adam(), squared_error, prepare=prepare, steps_per_call=count) for count in (1, 3)
    )
    for _ in range(2):
        three = batches(3)
        metrics = torch.stack([alone(LR, MAX_NORM, SCALE, batch) for batch in three])
        many = {name: torch.stack([batch[name] for batch in three]) for name in three[0]}
        assert torch.equal(together(LR, MAX_NORM, SCALE, many), metrics)
    assert torch.equal(together.flat, alone.flat)
    assert all(torch.equal(tensor, alone.state[name]) for name, tensor in together.state.items())


def test_a_learning_rate_may_differ_from_parameter_to_parameter() -> None:
    one = update(RMSprop())
    before = one.flat.clone()
    one(LAYOUT.per_parameter(LR, {"bias": torch.zeros(M)}), MAX_NORM, SCALE, batches(1)[0])
    assert torch.equal(one.flat[:, 6:], before[:, 6:])
    assert not torch.isclose(one.flat[:, :6], before[:, :6]).any()


def test_one_members_nan_stays_its_own() -> None:
    healthy, poisoned = update(Adam()), update(Adam())
    poisoned.flat[1] = torch.nan
    for batch in batches(3):
        healthy(LR, MAX_NORM, SCALE, batch)
        poisoned(LR, MAX_NORM, SCALE, batch)
    for member in (0, 2):
        assert torch.equal(poisoned.flat[member], healthy.flat[member])
    assert poisoned.flat[1].isnan().all()


def test_a_member_goes_on_from_what_was_saved() -> None:
    one, other = update(Adam()), update(Adam())
    first, *rest = batches(4)
    one(LR, MAX_NORM, SCALE, first)
    saved = [one.save(member) for member in range(M)]
    for batch in rest:
        one(LR, MAX_NORM, SCALE, batch)
    for member in range(M):
        other.load(member, saved[member])
    for batch in rest:
        other(LR, MAX_NORM, SCALE, batch)
    assert torch.equal(one.flat, other.flat)
    assert all(isinstance(array, np.ndarray) for array in saved[0].values())


@pytest.mark.skipif(
    not torch.set_flush_denormal(False),
    reason="FLUSHING OF DENORMALS IS NOT TESTED: this processor has no mode for it",
)
def test_denormal_moments_are_flushed_to_zero() -> None:
    """Processors are many times slower on floats below 1.2e-38, to which the moments of dead units decay."""
    one = update(Adam())
    one.state["m"][:] = 1.2e-38
    one(LR, torch.zeros(M), SCALE, batches(1)[0])
    assert one.state["m"].eq(0).all()
    assert torch.tensor(1.2e-38) * 0.5 != 0, "outside of an update nothing is flushed"
