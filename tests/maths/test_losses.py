"""Losses against numbers computed by hand, the signs of their gradients, and members that do not mix."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rldsl.maths import losses


def t(*rows: list[float]) -> Tensor:
    return torch.tensor(rows)


def test_reinforce_loss_by_hand() -> None:
    # member 0: -(-1 * 2 + -3 * 4) / 2 = 7; member 1: -(-1 * -2 + -3 * 0) / 2 = -1
    got = losses.reinforce_loss(t([-1.0, -3.0], [-1.0, -3.0]), t([2.0, 4.0], [-2.0, 0.0]))
    torch.testing.assert_close(got, torch.tensor([7.0, -1.0]))


def test_reinforce_raises_the_probability_of_good_actions() -> None:
    advantage = t([2.0, -4.0])
    grad = torch.func.grad(lambda x: losses.reinforce_loss(x, advantage).sum())(torch.zeros(1, 2))
    torch.testing.assert_close(grad, t([-1.0, 2.0]))  # -A / 2: descent raises the first, lowers the second


def test_ppo_clip_loss_by_hand() -> None:
    old = torch.zeros(2, 4)
    ratio = torch.tensor([1.5, 0.5, 1.5, 0.5]).expand(2, 4)
    advantage = torch.tensor([1.0, 1.0, -1.0, -1.0]).expand(2, 4)
    # clip .2: min(1.5, 1.2) + min(.5, .8) + min(-1.5, -1.2) + min(-.5, -.8) = 1.2 + .5 - 1.5 - .8 = -.6, loss .15
    # clip .6: nothing is clipped: 1.5 + .5 - 1.5 - .5 = 0
    got = losses.ppo_clip_loss(ratio.log(), old, advantage, torch.tensor([0.2, 0.6]))
    torch.testing.assert_close(got, torch.tensor([0.15, 0.0]))


def test_ppo_gradient_is_zero_only_where_the_clip_is_the_minimum() -> None:
    ratio, advantage = t([1.5, 0.5, 1.5, 0.5, 1.0]), t([1.0, 1.0, -1.0, -1.0, 3.0])

    def loss(log_prob: Tensor) -> Tensor:
        return losses.ppo_clip_loss(log_prob, torch.zeros(1, 5), advantage, torch.tensor([0.2])).sum()

    # d(-rho * A / 5) / d log pi = -rho * A / 5; clipped where rho > 1.2 and A > 0 and where rho < .8 and A < 0
    torch.testing.assert_close(torch.func.grad(loss)(ratio.log()), t([0.0, -0.1, 0.3, 0.0, -0.6]))


def test_approximate_kl_and_clip_fraction_by_hand() -> None:
    new, old = t([math.log(2.0), 0.0]), t([0.0, 0.0])
    # (2 - 1 - ln 2 + 0) / 2
    torch.testing.assert_close(losses.approximate_kl(new, old), torch.tensor([(1 - math.log(2)) / 2]))
    torch.testing.assert_close(losses.clip_fraction(new, old, torch.tensor([0.5])), torch.tensor([0.5]))
    torch.testing.assert_close(losses.clip_fraction(new, old, torch.tensor([1.5])), torch.tensor([0.0]))


def test_approximate_kl_estimates_the_kl_divergence() -> None:
    old, new = torch.tensor([0.7, 0.3]), torch.tensor([0.6, 0.4])
    action = (torch.rand(1, 200_000, generator=torch.Generator().manual_seed(0)) > 0.7).long()
    want = (old * (old / new).log()).sum()
    got = losses.approximate_kl(new.log()[action], old.log()[action])
    torch.testing.assert_close(got[0], want, rtol=0.03, atol=0)


def test_value_loss_by_hand() -> None:
    value, target = t([1.0, 2.0], [1.0, 2.0]), t([3.0, 2.0], [5.0, 0.0])
    # (4 + 0) / 2 = 2; (16 + 4) / 2 = 10; divided by scale^2 = 4 and 100
    torch.testing.assert_close(losses.value_loss(value, target), torch.tensor([2.0, 10.0]))
    torch.testing.assert_close(losses.value_loss(value, target, torch.tensor([2.0, 10.0])), torch.tensor([0.5, 0.1]))


def test_clipped_value_loss_by_hand() -> None:
    value, old, target = t([3.0, 1.2]), t([1.0, 1.0]), t([3.0, 2.0])
    # clip .5: max(0, (1.5 - 3)^2 = 2.25) and (1.2 - 2)^2 = .64: 2.89 / 2
    torch.testing.assert_close(
        losses.clipped_value_loss(value, old, target, torch.tensor([0.5])), torch.tensor([1.445])
    )
    # scale 2: values 1.5, .6, old .5, targets 1.5, 1; clip .5: max(0, (1 - 1.5)^2 = .25) and .16: .41 / 2
    got = losses.clipped_value_loss(value, old, target, torch.tensor([0.5]), torch.tensor([2.0]))
    torch.testing.assert_close(got, torch.tensor([0.205]))


def test_huber_by_hand_and_as_torch() -> None:
    # .5 * .25 = .125; 1 * (3 - .5) = 2.5
    torch.testing.assert_close(losses.huber(torch.tensor([0.5, -3.0])), torch.tensor([0.125, 2.5]))
    error = torch.linspace(-5, 5, 41)
    want = torch.nn.functional.huber_loss(error, torch.zeros(41), reduction="none", delta=2.0)
    torch.testing.assert_close(losses.huber(error, 2.0), want)
    grad = torch.func.grad(lambda e: losses.huber(e).sum())(torch.tensor([0.5, -3.0, 3.0, 0.0]))
    torch.testing.assert_close(grad, torch.tensor([0.5, -1.0, 1.0, 0.0]))


def test_self_imitation_losses_by_hand() -> None:
    log_prob, weight = t([-1.0, -7.0, -2.0]), t([1.0, 0.5, 1.0])
    returns, value = t([1.5, 4.0, 0.0]), t([1.0, 1.0, 3.0])
    # R - V = .5, 3, -3. Policy: 1 * 1 * .5 + .5 * min(7, 5) * min(3, 1) + 0 = 3, over 3
    torch.testing.assert_close(losses.self_imitation_policy_loss(log_prob, returns, value, weight), torch.tensor([1.0]))
    # Value: .5 * .25 + .5 * .5 * 9 + 0 = 2.375, over 3
    torch.testing.assert_close(losses.self_imitation_value_loss(returns, value, weight), torch.tensor([2.375 / 3]))


def test_self_imitation_gradients() -> None:
    log_prob, weight = t([-1.0, -7.0, -2.0]), t([1.0, 0.5, 1.0])
    returns, value = t([1.5, 4.0, 0.0]), t([1.0, 1.0, 3.0])
    policy = torch.func.grad(
        lambda x, v: losses.self_imitation_policy_loss(x, returns, v, weight).sum(), argnums=(0, 1)
    )
    by_log_prob, by_value = policy(log_prob, value)
    torch.testing.assert_close(by_log_prob, t([-0.5, -0.5, 0.0]) / 3)  # -w * A / 3: the cap keeps the gradient
    assert not by_value.any()
    critic = torch.func.grad(lambda v: losses.self_imitation_value_loss(returns, v, weight).sum())(value)
    torch.testing.assert_close(critic, t([-0.5, -1.5, 0.0]) / 3)  # -w * (R - V) / 3: descent raises V, never lowers it


def test_entropy_bonus_by_hand() -> None:
    # .1 * 2 and .5 * 3
    got = losses.entropy_bonus(t([1.0, 3.0], [3.0, 3.0]), torch.tensor([0.1, 0.5]))
    torch.testing.assert_close(got, torch.tensor([0.2, 1.5]))


def test_normalize_per_member_by_hand() -> None:
    # mean 2, unbiased std sqrt((1 + 0 + 1) / 2) = 1; a constant member becomes 0
    got = losses.normalize_per_member(t([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]))
    torch.testing.assert_close(got, t([-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]))
    rollout = torch.arange(12.0).reshape(2, 3, 2)
    torch.testing.assert_close(losses.normalize_per_member(rollout).mean((1, 2)), torch.zeros(2))
    torch.testing.assert_close(losses.normalize_per_member(t([5.0], [7.0])), t([5.0], [7.0]))


def test_explained_variance_by_hand() -> None:
    target = t([1.0, 3.0], [1.0, 3.0], [2.0, 2.0])
    value = t([1.0, 3.0], [2.0, 3.0], [1.0, 2.0])
    # perfect: 1; Var(-1, 0) = .25, Var(1, 3) = 1: .75; constant target: nan
    torch.testing.assert_close(
        losses.explained_variance(value, target), torch.tensor([1.0, 0.75, torch.nan]), equal_nan=True
    )


CLIP = torch.tensor([0.1, 0.2])
PER_MEMBER: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "reinforce": lambda a, b, _: losses.reinforce_loss(a, b),
    "ppo": lambda a, b, c: losses.ppo_clip_loss(a, b, c, CLIP),
    "kl": lambda a, b, _: losses.approximate_kl(a, b),
    "clip_fraction": lambda a, b, _: losses.clip_fraction(a, b, CLIP),
    "value": lambda a, b, _: losses.value_loss(a, b, CLIP),
    "clipped_value": lambda a, b, c: losses.clipped_value_loss(a, b, c, CLIP, CLIP),
    "sil_policy": lambda a, b, c: losses.self_imitation_policy_loss(a, b, c, torch.ones(2, 6)),
    "sil_value": lambda a, b, _: losses.self_imitation_value_loss(a, b, torch.ones(2, 6)),
    "entropy": lambda a, b, _: losses.entropy_bonus(a, CLIP),
    "normalize": lambda a, b, _: losses.normalize_per_member(a),
    "explained_variance": lambda a, b, _: losses.explained_variance(a, b),
}


@pytest.mark.parametrize("name", PER_MEMBER)
def test_members_do_not_mix(name: str) -> None:
    function = PER_MEMBER[name]
    args = torch.randn(3, 2, 6, generator=torch.Generator().manual_seed(0)).unbind(0)
    before = function(*args)
    assert before.shape[0] == 2
    poisoned = [a.clone() for a in args]
    for a in poisoned:
        a[0] = torch.nan
    after = function(*poisoned)
    assert torch.equal(before[1], after[1])
    assert after[0].isnan().any() or name == "clip_fraction"  # no comparison with nan is true
    grads = [torch.func.grad(lambda a, rest=x[1:]: function(a, *rest)[1].sum())(x[0]) for x in (args, poisoned)]
    assert torch.equal(grads[0][1], grads[1][1])
    assert not grads[0][0].any()


@pytest.mark.parametrize("name", PER_MEMBER)
def test_compiles_whole(name: str) -> None:
    args = torch.randn(3, 2, 6, generator=torch.Generator().manual_seed(0)).unbind(0)
    compiled = torch.compile(PER_MEMBER[name], fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*args), PER_MEMBER[name](*args))
