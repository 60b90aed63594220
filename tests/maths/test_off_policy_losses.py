"""Losses and targets of replayed batches against numbers computed by hand; who gets gradients; members apart."""

import math

import pytest
import torch
from torch import Tensor

from rldsl.maths import off_policy_losses as losses
from rldsl.maths.distributions import squashed_gaussian_log_prob, squashed_gaussian_sample
from rldsl.maths.returns import double_q_target, expected_soft_value, q_learning_target, td_target


def t(*rows: list[float]) -> Tensor:
    return torch.tensor(rows)


def test_huber_td_loss_by_hand() -> None:
    # errors 0.5, -3: 0.125 and 3 - 0.5 = 2.5; weights 1, 0.2: (0.125 + 0.5) / 2; errors 1, 0 with delta 1: 0.5 / 2
    got = losses.huber_td_loss(t([1.5, 0.0], [1.0, 2.0]), t([1.0, 3.0], [0.0, 2.0]), t([1.0, 0.2], [1.0, 1.0]))
    torch.testing.assert_close(got, torch.tensor([0.3125, 0.25]))


def test_a_target_of_n_steps_has_its_own_discount() -> None:
    # 1 + .5 * 4; 2 + .125 * 8; terminated: 3
    discount, terminated = t([0.5, 0.125, 0.9]), torch.tensor([[False, False, True]])
    next_q = torch.tensor([[[4.0, 1.0], [0.0, 8.0], [5.0, 5.0]]])
    got = q_learning_target(t([1.0, 2.0, 3.0]), next_q, terminated, discount)
    torch.testing.assert_close(got, t([3.0, 3.0, 3.0]))
    # the online network would choose the other action in the first two: 1 + .5 * 1; 2 + .125 * 0
    got = double_q_target(t([1.0, 2.0, 3.0]), next_q, -next_q, terminated, discount)
    torch.testing.assert_close(got, t([1.5, 2.0, 3.0]))


def test_critics_loss_by_hand() -> None:
    # errors 1, -2 and 0, 4: 0.5 * (1 + 4) / 2 + 0.5 * (0 + 16) / 2 = 1.25 + 4
    q, target = torch.tensor([[[2.0, 0.0], [1.0, 6.0]]]), t([1.0, 2.0])
    torch.testing.assert_close(losses.critics_loss(q, target), torch.tensor([5.25]))
    # weights 1, .5: 0.5 * (1 + 2) / 2 + 0.5 * (0 + 8) / 2
    torch.testing.assert_close(losses.critics_loss(q, target, t([1.0, 0.5])), torch.tensor([2.75]))


def test_critics_are_combined_behind_the_member() -> None:
    q = torch.tensor([[[1.0, 5.0], [3.0, 1.0]], [[0.0, 0.0], [2.0, 4.0]]])
    torch.testing.assert_close(losses.combine_critics(q), t([1.0, 1.0], [0.0, 0.0]))
    torch.testing.assert_close(losses.combine_critics(q, "mean"), t([2.0, 3.0], [1.0, 2.0]))


def test_soft_actor_loss_by_hand() -> None:
    # alpha .5: (.5 * -2 - 3 + .5 * 4 - 1) / 2 = -1.5; alpha 2: (2 * -2 - 3 + 2 * 4 - 1) / 2 = 0
    log_prob, q = t([-2.0, 4.0], [-2.0, 4.0]), t([3.0, 1.0], [3.0, 1.0])
    got = losses.soft_actor_loss(log_prob, q, torch.tensor([0.5, 2.0]))
    torch.testing.assert_close(got, torch.tensor([-1.5, 0.0]))


def test_expected_soft_actor_loss_by_hand() -> None:
    # pi = 1/4, 3/4, q = 2, 1, alpha = 1: (ln .25 - 2) / 4 + 3 (ln .75 - 1) / 4
    log_probs, q = torch.tensor([[[0.25, 0.75]]]).log(), torch.tensor([[[2.0, 1.0]]])
    want = (math.log(0.25) - 2) / 4 + 3 * (math.log(0.75) - 1) / 4
    got = losses.expected_soft_actor_loss(log_probs, q, torch.ones(1))
    torch.testing.assert_close(got, torch.tensor([want]))
    torch.testing.assert_close(got, -expected_soft_value(q, log_probs, torch.ones(1))[0])


def test_the_best_discrete_policy_is_the_softmax_of_q_over_alpha() -> None:
    q, alpha = torch.tensor([[[1.0, 2.0, 0.5]], [[1.0, 2.0, 0.5]]]), torch.tensor([0.5, 2.0])

    def loss(logits: Tensor) -> Tensor:
        return losses.expected_soft_actor_loss(logits.log_softmax(-1), q, alpha).sum()

    best = q / alpha.reshape(2, 1, 1)
    torch.testing.assert_close(torch.func.grad(loss)(best), torch.zeros_like(q), rtol=0, atol=1e-6)
    assert torch.func.grad(loss)(torch.zeros_like(q)).abs().max() > 0.01


def test_the_best_squashed_policy_gains_nothing_from_a_step() -> None:
    """For q(a) = c * log-density of a squashed Gaussian and alpha = c, that Gaussian is the best policy."""
    noise = torch.randn(1, 4000, 1, generator=torch.Generator().manual_seed(0))
    noise = (noise - noise.mean()) / noise.std(correction=0)

    def loss(parameters: Tensor) -> Tensor:
        mean, log_std = (one.reshape(1, 1, 1) for one in parameters)
        _, x = squashed_gaussian_sample(mean, log_std, noise)
        log_prob = squashed_gaussian_log_prob(mean, log_std, x)
        q = 0.7 * squashed_gaussian_log_prob(torch.full_like(mean, 0.3), torch.full_like(mean, -0.5), x)
        return losses.soft_actor_loss(log_prob, q, torch.tensor([0.7])).sum()

    torch.testing.assert_close(torch.func.grad(loss)(torch.tensor([0.3, -0.5])), torch.zeros(2), rtol=0, atol=1e-4)
    downhill = torch.func.grad(loss)(torch.tensor([0.8, -0.5]))
    assert downhill[0] > 0.1, "descent moves the mean back"


def test_temperature_loss_by_hand() -> None:
    # H - target: (1 - 2 + 4 - 2) / 2 = .5 and (0 + 0 - 4) / 2 - ... = -1 - 1
    log_alpha, entropy = torch.tensor([2.0, -3.0]), t([1.0, 4.0], [0.0, -2.0])
    got = losses.temperature_loss(log_alpha, entropy, torch.tensor([2.0, 1.0]))
    torch.testing.assert_close(got, torch.tensor([1.0, 6.0]))


def test_the_temperature_falls_while_there_is_more_entropy_than_wanted() -> None:
    def loss(log_alpha: Tensor) -> Tensor:
        return losses.temperature_loss(log_alpha, t([1.0, 4.0], [0.0, -2.0]), torch.tensor([2.0, 1.0])).sum()

    torch.testing.assert_close(torch.func.grad(loss)(torch.zeros(2)), torch.tensor([0.5, -2.0]))


@pytest.mark.parametrize("name", ["target", "weight"])
def test_no_gradient_flows_into_data(name: str) -> None:
    data = {"target": t([1.0, 2.0]), "weight": t([1.0, 1.0])}
    data[name].requires_grad_()
    q = t([3.0, 1.0]).requires_grad_()
    (losses.huber_td_loss(q, **data) + losses.critics_loss(q.unsqueeze(1), **data)).sum().backward()
    assert data[name].grad is None and q.grad is not None


def test_alpha_learns_from_its_own_loss_alone() -> None:
    alpha, log_prob = torch.ones(1, requires_grad=True), t([-1.0, -2.0]).requires_grad_()
    q = torch.ones(1, 2, 2, requires_grad=True)
    losses.soft_actor_loss(log_prob, t([1.0, 1.0]), alpha).sum().backward()
    losses.expected_soft_actor_loss(torch.zeros(1, 2, 2).log_softmax(-1).requires_grad_(), q, alpha).sum().backward()
    assert alpha.grad is None and q.grad is None and log_prob.grad is not None


def test_members_do_not_mix() -> None:
    good, bad = torch.rand(1, 4, generator=torch.Generator().manual_seed(0)), torch.full((1, 4), torch.nan)
    one = torch.ones(2)
    for x in (torch.cat((bad, good)),):
        for got, alone in (
            (losses.huber_td_loss(x, x + 1, x), losses.huber_td_loss(good, good + 1, good)),
            (losses.critics_loss(x.unsqueeze(1), x * 2), losses.critics_loss(good.unsqueeze(1), good * 2)),
            (losses.soft_actor_loss(x, x * 3, one), losses.soft_actor_loss(good, good * 3, one[:1])),
            (losses.temperature_loss(one, x, one), losses.temperature_loss(one[:1], good, one[:1])),
        ):
            assert got[0].isnan()
            torch.testing.assert_close(got[1:], alone)


def test_they_compile_whole() -> None:
    def everything(q: Tensor, target: Tensor, log_probs: Tensor, alpha: Tensor) -> Tensor:
        values, reward = losses.combine_critics(torch.stack((q, q + 1), 1)), target[..., 0]
        aim = td_target(reward, expected_soft_value(values, log_probs, alpha), reward > 0.5, alpha)
        return (
            losses.huber_td_loss(q[..., 0], aim, reward)
            + losses.critics_loss(q.transpose(1, 2), aim)
            + losses.expected_soft_actor_loss(log_probs, q, alpha)
            + losses.temperature_loss(alpha.log(), log_probs[..., 0], alpha)
        )

    random = torch.Generator().manual_seed(0)
    q, target, logits = (torch.rand(2, 6, 3, generator=random) for _ in range(3))
    arguments = (q, target, logits.log_softmax(-1), torch.tensor([0.5, 0.9]))
    torch.testing.assert_close(
        torch.compile(everything, fullgraph=True, backend="eager")(*arguments), everything(*arguments)
    )
