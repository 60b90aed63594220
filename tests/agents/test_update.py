"""A whole update: equal to torch.optim on a plain module; compiled, equal to eager."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rldsl import Adam, AdamW, Optimizer, RMSprop
from rldsl.agents.update import REPAYING_STEPS, Batch, Loss, Update, choose_compiled
from rldsl.nets.layout import Layout, Params
from rldsl.spec.compute import Compute

LAYOUT = Layout.of({"weight": (3, 2), "bias": (1, 2)})
M, B = 3, 5
LR, MAX_NORM = torch.tensor([0.1, 0.01, 0.03]), torch.tensor([0.2, float("inf"), 1e3])


def squared_error(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
    predicted = torch.baddbmm(params["bias"], batch["x"], params["weight"])
    loss = coefficients["scale"] * (predicted - batch["y"]).square().flatten(1).mean(1)
    return loss, loss.unsqueeze(1)


def absolute_error(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
    predicted = torch.baddbmm(params["bias"], batch["x"], params["weight"])
    loss = coefficients["scale"] * (predicted - batch["y"]).abs().flatten(1).mean(1)
    return loss, loss.unsqueeze(1)


def batches(count: int) -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(0)
    drawn = [torch.randn(M, B, 5, generator=random) for _ in range(count)]
    return [{"x": one[..., :3], "y": one[..., 3:]} for one in drawn]


def update(optimizer: Optimizer, compiled: bool = False, loss: Loss = squared_error) -> Update:
    flat = torch.randn(M, LAYOUT.size, generator=torch.Generator().manual_seed(1))
    return Update(LAYOUT, flat, optimizer, loss, compiled)


SCALE = {"scale": torch.tensor([1.0, 2.0, 0.5])}
OPTIMIZERS: list[tuple[Optimizer, Callable[..., Any]]] = [
    (Adam(betas=(0.8, 0.99)), lambda p, lr: torch.optim.Adam(p, lr, betas=(0.8, 0.99), eps=1e-5)),
    (AdamW(weight_decay=0.1), lambda p, lr: torch.optim.AdamW(p, lr, eps=1e-5, weight_decay=0.1)),
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
    """What a compiled update does, without the compiler."""
    whole, pieces = update(optimizer), update(optimizer, compiled=True)
    pieces._move = torch.no_grad()(pieces._whole)
    for batch in batches(5):
        torch.testing.assert_close(*(one(lr, MAX_NORM, SCALE, batch) for one in (whole, pieces)))
    torch.testing.assert_close(whole.flat, pieces.flat)
    for name, tensor in whole.state.items():
        torch.testing.assert_close(tensor, pieces.state[name])


@pytest.mark.parametrize("before", [None, lambda batch, coefficients: {**batch, "y": batch["y"] * 2}])
def test_several_steps_together_are_the_same_steps(before: Any) -> None:
    flat = update(Adam()).flat
    alone, together = (
        Update(LAYOUT, flat.clone(), Adam(), squared_error, False, before=before, together=count) for count in (1, 3)
    )
    for _ in range(2):
        three = batches(3)
        metrics = torch.stack([alone(LR, MAX_NORM, SCALE, batch) for batch in three])
        many = {name: torch.stack([batch[name] for batch in three]) for name in three[0]}
        assert torch.equal(together(LR, MAX_NORM, SCALE, many), metrics)
    assert torch.equal(together.flat, alone.flat)
    assert all(torch.equal(tensor, alone.state[name]) for name, tensor in together.state.items())


needs_a_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))),
    reason="THE COMPILED UPDATE IS NOT TESTED: there is no C++ compiler on this machine",
)


@needs_a_compiler
def test_a_compiled_update_equals_the_eager_one_and_each_has_its_own_loss() -> None:
    """Two in one process, as PPO and its self-imitation are: what was compiled for one must not serve the other."""
    for loss in (squared_error, absolute_error):
        eager, compiled = update(Adam(), loss=loss), update(Adam(), loss=loss, compiled=True)
        for step, batch in enumerate(batches(5)):
            metrics = [one(LR / (1 + step), MAX_NORM, SCALE, batch) for one in (eager, compiled)]
            torch.testing.assert_close(*metrics, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(eager.flat, compiled.flat, rtol=1e-4, atol=1e-5)
        for name, tensor in eager.state.items():
            torch.testing.assert_close(tensor, compiled.state[name], rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize(
    ("choice", "steps", "expected"),
    [
        ("off", 10 * REPAYING_STEPS, False),
        ("on", 1, True),
        ("auto", REPAYING_STEPS - 1, False),
        ("auto", REPAYING_STEPS, True),
    ],
)
def test_compiling_is_chosen_where_the_budget_repays_it(
    choice: Any, steps: int, expected: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "g++"
    compiler.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_compiled(Compute(compile=choice), steps) is expected


def test_a_machine_without_a_compiler_runs_eager_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not choose_compiled(Compute(compile="auto"), REPAYING_STEPS)
    assert capsys.readouterr().err == "rldsl: no C++ compiler is there: updates run eager\n"
    assert not choose_compiled(Compute(compile="auto"), 1)
    assert not choose_compiled(Compute(compile="off"), REPAYING_STEPS)
    assert capsys.readouterr().err == "", "nothing is said where nothing was meant to be compiled"


def test_a_gpu_needs_no_cpp_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_compiled(Compute(compile="on", device="cuda"), 1)


def test_a_tensor_that_stands_in_two_places_at_first_may_differ_later() -> None:
    compiled, eager = update(Adam(), compiled=True), update(Adam())
    same, other = torch.full((M,), 0.1), torch.full((M,), 0.7)
    for max_norm in (same, other):
        for one in (compiled, eager):
            one(same, max_norm, SCALE, batches(1)[0])
    torch.testing.assert_close(compiled.flat, eager.flat)


def test_what_has_decayed_to_almost_nothing_is_nothing() -> None:
    """Floats below 1e-38 take many times as long as others, and dead units have nothing else in their moments."""
    one = update(Adam())
    one.state["m"][:] = 1e-38
    one(LR, torch.zeros(M), SCALE, batches(1)[0])
    if torch.set_flush_denormal(False):
        assert one.state["m"].eq(0).all()
    assert torch.tensor(1e-38) * 0.5 != 0, "an environment computes with all numbers"
