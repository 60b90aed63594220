"""Returns and targets against numbers computed by hand and against loops that follow the definition."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rldsl.maths import returns


def rollout(*rows: list[float]) -> Tensor:
    """One row of T numbers for each member, one environment: `[M, T, 1]`."""
    return torch.tensor(rows).unsqueeze(-1)


def flags(*rows: list[int]) -> Tensor:
    return rollout(*rows).bool()


# Four steps: truncated at step 1 (its final observation is worth 10), terminated at step 2, rollout cut after step 3
# (the next observation is worth 20). 99 stands where a bootstrap value must not be read.
REWARD = rollout([1.0, 2.0, 3.0, 4.0])
TERMINATED = flags([0, 0, 1, 0])
ENDED = flags([0, 1, 1, 0])
BOOTSTRAP = rollout([99.0, 10.0, 99.0, 20.0])
HALF = torch.tensor([0.5])


def test_discounted_returns_bootstrap_truncation_but_not_termination() -> None:
    # G3 = 4 + .5 * 20 = 14; G2 = 3; G1 = 2 + .5 * 10 = 7; G0 = 1 + .5 * 7 = 4.5
    got = returns.discounted_returns(REWARD, TERMINATED, ENDED, BOOTSTRAP, HALF)
    torch.testing.assert_close(got, rollout([4.5, 7.0, 3.0, 14.0]))


def test_generalized_advantages_by_hand() -> None:
    value = rollout([1.0, 2.0, 3.0, 4.0])
    next_value = rollout([2.0, 10.0, 99.0, 20.0])
    # delta0 = 1 + .5 * 2 - 1 = 1;  delta1 = 2 + .5 * 10 - 2 = 5;  delta2 = 3 - 3 = 0;  delta3 = 4 + .5 * 20 - 4 = 10
    # gamma * lam = .4: A3 = 10; A2 = 0 and A1 = 5 (ended: trace cut); A0 = 1 + .4 * 5 = 3
    got = returns.generalized_advantages(REWARD, value, next_value, TERMINATED, ENDED, HALF, torch.tensor([0.8]))
    torch.testing.assert_close(got, rollout([3.0, 5.0, 0.0, 10.0]))


def test_n_step_returns_by_hand() -> None:
    reward, none = rollout([1.0, 2.0, 3.0, 4.0]), flags([0, 0, 0, 0])
    next_value = rollout([10.0, 20.0, 30.0, 40.0])
    # n = 2, gamma = .5: G0 = 1 + .5 * 2 + .25 * 20 = 7; G1 = 2 + 1.5 + 7.5 = 11; G2 = 3 + 2 + 10 = 15;
    # G3 = 4 + .5 * 40 = 24, as far as the rollout goes
    got = returns.n_step_returns(reward, next_value, none, none, HALF, 2)
    torch.testing.assert_close(got, rollout([7.0, 11.0, 15.0, 24.0]))


@pytest.mark.parametrize("n", [4, 100])
def test_n_step_returns_of_the_whole_rollout_are_the_discounted_ones(n: int) -> None:
    got = returns.n_step_returns(REWARD, BOOTSTRAP, TERMINATED, ENDED, HALF, n)
    torch.testing.assert_close(got, returns.discounted_returns(REWARD, TERMINATED, ENDED, BOOTSTRAP, HALF))


def batch(*rows: list[float]) -> Tensor:
    return torch.tensor(rows)


def test_one_step_targets_by_hand() -> None:
    reward, terminated = batch([1.0, 1.0], [1.0, 1.0]), batch([0, 1], [0, 1]).bool()
    gamma = torch.tensor([0.5, 0.9])
    q = batch([2.0, 4.0], [2.0, 4.0]).unsqueeze(1).expand(2, 2, 2)  # q(s', a) = 2, 4 in every state
    online = batch([9.0, 4.0], [9.0, 4.0]).unsqueeze(1).expand(2, 2, 2)  # prefers action 0
    # member 0: 1 + .5 * 4 = 3 and a terminal 1; member 1: 1 + .9 * 4 = 4.6 and a terminal 1
    torch.testing.assert_close(returns.q_learning_target(reward, q, terminated, gamma), batch([3.0, 1.0], [4.6, 1.0]))
    # the online net picks action 0, the target net says 2: 1 + .5 * 2 = 2 and 1 + .9 * 2 = 2.8
    torch.testing.assert_close(
        returns.double_q_target(reward, q, online, terminated, gamma), batch([2.0, 1.0], [2.8, 1.0])
    )


def test_td_target_takes_a_gamma_for_each_item() -> None:
    # 1 + .5 * 2 = 2 and 1 + .25 * 2 = 1.5
    got = returns.td_target(batch([1.0, 1.0]), batch([2.0, 2.0]), batch([0, 0]).bool(), gamma=batch([0.5, 0.25]))
    torch.testing.assert_close(got, batch([2.0, 1.5]))


def test_expected_soft_value_by_hand() -> None:
    # p = 1/2, 1/2 and q = 2, 4: 3 + alpha * ln 2, alpha = 1
    log_probs = torch.full((1, 1, 2), 0.5).log()
    got = returns.expected_soft_value(torch.tensor([[[2.0, 4.0]]]), log_probs, torch.ones(1))
    torch.testing.assert_close(got, torch.tensor([[3.0]]) + np.log(2))


def random_rollout(seed: int, M: int, T: int, N: int) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    ended = torch.rand(M, T, N, generator=g) < 0.3
    normal = {k: torch.randn(M, T, N, generator=g, dtype=torch.float64) for k in ("reward", "value", "next_value")}
    unit = {k: torch.rand(M, generator=g, dtype=torch.float64) for k in ("gamma", "lam")}
    return {**normal, **unit, "ended": ended, "terminated": ended & (torch.rand(M, T, N, generator=g) < 0.5)}


def naive_n_step(x: dict[str, Tensor], m: int, t: int, e: int, n: int) -> float:
    """Walk forward from t, as the definition says."""
    total, discount, gamma = 0.0, 1.0, float(x["gamma"][m])
    T = x["reward"].shape[1]
    for k in range(t, min(t + n, T)):
        total += discount * float(x["reward"][m, k, e])
        discount *= gamma
        if x["ended"][m, k, e] or k == min(t + n, T) - 1:
            return total + (0.0 if x["terminated"][m, k, e] else discount * float(x["next_value"][m, k, e]))
    raise AssertionError


def naive_advantage(x: dict[str, Tensor], m: int, t: int, e: int) -> float:
    """sum_k (gamma * lam)^k * delta_{t+k} to the end of the episode."""
    total, weight, gamma, lam = 0.0, 1.0, float(x["gamma"][m]), float(x["lam"][m])
    for k in range(t, x["reward"].shape[1]):
        follow = 0.0 if x["terminated"][m, k, e] else gamma * float(x["next_value"][m, k, e])
        total += weight * (float(x["reward"][m, k, e]) + follow - float(x["value"][m, k, e]))
        weight *= gamma * lam
        if x["ended"][m, k, e]:
            break
    return total


SHAPES = {"M": st.integers(1, 3), "T": st.integers(1, 9), "N": st.integers(1, 2), "seed": st.integers(0, 10**6)}


@settings(max_examples=30, deadline=None)
@given(**SHAPES, n=st.integers(1, 10))
def test_returns_follow_their_definition(M: int, T: int, N: int, seed: int, n: int) -> None:
    x = random_rollout(seed, M, T, N)
    for steps, got in (
        (n, returns.n_step_returns(x["reward"], x["next_value"], x["terminated"], x["ended"], x["gamma"], n)),
        (T, returns.discounted_returns(x["reward"], x["terminated"], x["ended"], x["next_value"], x["gamma"])),
    ):
        want = [[[naive_n_step(x, m, t, e, steps) for e in range(N)] for t in range(T)] for m in range(M)]
        torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float64))


@settings(max_examples=30, deadline=None)
@given(**SHAPES)
def test_advantages_follow_their_definition(M: int, T: int, N: int, seed: int) -> None:
    x = random_rollout(seed, M, T, N)
    want = [[[naive_advantage(x, m, t, e) for e in range(N)] for t in range(T)] for m in range(M)]
    torch.testing.assert_close(returns.generalized_advantages(**x), torch.tensor(want, dtype=torch.float64))


def test_advantages_with_lambda_one_are_returns_minus_value() -> None:
    x = random_rollout(0, 2, 50, 3)
    to_go = returns.discounted_returns(x["reward"], x["terminated"], x["ended"], x["next_value"], x["gamma"])
    # The two telescope to the same thing only if next_value[t] is value[t + 1] inside an episode.
    inner = ~x["ended"][:, :-1]
    x["next_value"][:, :-1] = torch.where(inner, x["value"][:, 1:], x["next_value"][:, :-1])
    x["lam"] = torch.ones_like(x["lam"])
    torch.testing.assert_close(returns.generalized_advantages(**x), to_go - x["value"])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_members_do_not_mix(bad: float) -> None:
    x = random_rollout(1, 2, 33, 4)
    before = (
        returns.generalized_advantages(**x),
        returns.n_step_returns(*_n_step_args(x), 3),
        returns.n_step_returns(*_n_step_args(x), 99),
    )
    for k in ("reward", "value", "next_value", "gamma", "lam"):
        x[k][0] = bad
    after = (
        returns.generalized_advantages(**x),
        returns.n_step_returns(*_n_step_args(x), 3),
        returns.n_step_returns(*_n_step_args(x), 99),
    )
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a[1], b[1])
        assert not torch.isfinite(b[0]).all()


def _n_step_args(x: dict[str, Tensor]) -> list[Tensor]:
    return [x[k] for k in ("reward", "next_value", "terminated", "ended", "gamma")]


def test_compiles_whole() -> None:
    x = random_rollout(2, 2, 16, 3)
    for function, args in (
        (
            returns.generalized_advantages,
            [x[k] for k in ("reward", "value", "next_value", "terminated", "ended", "gamma", "lam")],
        ),
        (lambda *a: returns.n_step_returns(*a, 3), _n_step_args(x)),
        (lambda *a: returns.n_step_returns(*a, 99), _n_step_args(x)),
    ):
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(*args), function(*args))


def test_gradient_of_advantages_passes_the_numerical_check() -> None:
    x = random_rollout(3, 2, 5, 2)
    x["value"].requires_grad_()
    x["next_value"].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda v, nv: returns.generalized_advantages(**{**x, "value": v, "next_value": nv}),
        (x["value"], x["next_value"]),
    )
