"""Optimizers against torch.optim, member by member, and members that do not mix."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rldsl.maths import optimizers

M, P, STEPS = 3, 7, 50
LR = torch.tensor([1e-3, 1e-2, 0.1])
DECAY = 0.1

Step = Callable[[Tensor, Tensor, optimizers.State], None]
STEP: dict[str, Step] = {
    "adam": lambda p, g, s: optimizers.adam(p, g, s, LR, corrections(s, 0.5), beta1=0.5, eps=1e-5),
    "adamw": lambda p, g, s: adamw(p, g, s),
    "rmsprop": lambda p, g, s: optimizers.rmsprop(p, g, s, LR, alpha=0.95, eps=1e-5),
}
REFERENCE: dict[str, Callable[[Tensor, int], torch.optim.Optimizer]] = {
    "adam": lambda p, m: torch.optim.Adam([p], lr=float(LR[m]), betas=(0.5, 0.999), eps=1e-5),
    "adamw": lambda p, m: torch.optim.AdamW([p], lr=float(LR[m]), weight_decay=DECAY),
    "rmsprop": lambda p, m: torch.optim.RMSprop([p], lr=float(LR[m]), alpha=0.95, eps=1e-5),
}


def adamw(params: Tensor, grad: Tensor, state: optimizers.State) -> None:
    optimizers.decay_weights(params, LR[:, None], DECAY)
    optimizers.adam(params, grad, state, LR[:, None], corrections(state))


def start(name: str) -> tuple[Tensor, optimizers.State]:
    params = torch.randn(M, P, generator=torch.Generator().manual_seed(0))
    return params, (optimizers.rmsprop_state if name == "rmsprop" else optimizers.adam_state)(params)


def corrections(state: optimizers.State, beta1: float = 0.9) -> tuple[Tensor, Tensor]:
    return optimizers.bias_corrections(state["step"].add_(1), beta1)


def gradients() -> Tensor:
    """Gradients of very different sizes, so that the place of eps shows: `[STEPS, M, P]`."""
    g = torch.Generator().manual_seed(1)
    return torch.randn(STEPS, M, P, generator=g) * torch.logspace(-6, 2, P)


@pytest.mark.parametrize("name", STEP)
@pytest.mark.parametrize("compiled", [False, True])
def test_fifty_steps_are_those_of_torch(name: str, compiled: bool) -> None:
    params, state = start(name)
    theirs = [params[m].clone().requires_grad_() for m in range(M)]
    reference = [REFERENCE[name](p, m) for m, p in enumerate(theirs)]
    step = torch.compile(STEP[name], fullgraph=True, backend="eager") if compiled else STEP[name]
    for grad in gradients():
        step(params, grad, state)
        for m in range(M):
            theirs[m].grad = grad[m].clone()
            reference[m].step()
    torch.testing.assert_close(params, torch.stack(theirs).detach(), rtol=2e-6, atol=2e-6)


def test_first_adam_step_by_hand() -> None:
    # t = 1: m_hat = g and v_hat = g^2, so p -= lr * g / (|g| + eps):
    # 1 - .1 * 2 / 2 = .9 and 1 + .1 * .5 / (.5 + .5) = 1.05
    for grad, eps, want in ((2.0, 0.0, 0.9), (-0.5, 0.5, 1.05)):
        params = torch.ones(1, 1)
        state = optimizers.adam_state(params)
        optimizers.adam(params, torch.full((1, 1), grad), state, torch.tensor([0.1]), corrections(state), eps=eps)
        torch.testing.assert_close(params, torch.tensor([[want]]))


def test_first_rmsprop_step_by_hand() -> None:
    # v = .01 * 4 = .04: 1 - .1 * 2 / (.2 + .3) = .6
    params = torch.ones(1, 1)
    optimizers.rmsprop(params, torch.tensor([[2.0]]), optimizers.rmsprop_state(params), torch.tensor([0.1]), eps=0.3)
    torch.testing.assert_close(params, torch.tensor([[0.6]]))


@pytest.mark.parametrize("name", STEP)
def test_a_member_with_nan_gradients_touches_no_other(name: str) -> None:
    results = []
    for poison in (False, True):
        params, state = start(name)
        for grad in gradients()[:5]:
            clean = grad.clone()
            clean[0] = torch.nan if poison else clean[0]
            clipped, _ = optimizers.clip_by_norm({"": clean}, torch.full((M,), 0.5))
            STEP[name](params, clipped[""], state)
        results.append((params, state))
    (params, state), (poisoned, poisoned_state) = results
    assert poisoned[0].isnan().all()
    assert torch.equal(params[1:], poisoned[1:])
    assert all(torch.equal(state[k][1:], poisoned_state[k][1:]) for k in state)


def test_clip_by_norm_by_hand() -> None:
    grads = {"a": torch.tensor([[3.0], [0.3], [0.0]]), "b": torch.tensor([4.0, 0.4, 0.0])}
    # norms 5, .5, 0 against 1, 1, 1: the first becomes 3 / 5, 4 / 5
    clipped, norm = optimizers.clip_by_norm(grads, torch.ones(3))
    torch.testing.assert_close(norm, torch.tensor([5.0, 0.5, 0.0]))
    torch.testing.assert_close(clipped["a"], torch.tensor([[0.6], [0.3], [0.0]]))
    torch.testing.assert_close(clipped["b"], torch.tensor([0.8, 0.4, 0.0]))


def test_clip_by_norm_is_as_in_torch_for_each_member() -> None:
    grad, limit = gradients()[0], torch.tensor([0.5, 1000.0, 10.0])
    parts = {"a": grad[:, :4].reshape(M, 2, 2), "b": grad[:, 4:]}
    clipped, norm = optimizers.clip_by_norm(parts, limit)
    for m in range(M):
        p = torch.zeros(P, requires_grad=True)
        p.grad = grad[m].clone()
        torch.testing.assert_close(norm[m], torch.nn.utils.clip_grad_norm_([p], float(limit[m])))
        torch.testing.assert_close(torch.cat([clipped["a"][m].flatten(), clipped["b"][m]]), p.grad)
