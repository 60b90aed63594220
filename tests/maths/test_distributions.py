"""Distributions by hand, against torch.distributions, and by the frequencies of what they sample."""

import math

import torch
from torch import distributions as reference

from rldsl.maths import distributions


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_categorical_by_hand() -> None:
    logits = torch.tensor([[[0.75, 0.25]]]).log()
    torch.testing.assert_close(
        distributions.categorical_log_prob(logits, torch.tensor([[1]])), torch.tensor([[math.log(0.25)]])
    )
    # -(.75 ln .75 + .25 ln .25)
    torch.testing.assert_close(distributions.categorical_entropy(logits), torch.tensor([[0.5623351]]))


def test_categorical_is_as_in_torch() -> None:
    logits = torch.randn(2, 5, 4, generator=generator())
    action = torch.randint(4, (2, 5), generator=generator())
    want = reference.Categorical(logits=logits)
    torch.testing.assert_close(distributions.categorical_log_prob(logits, action), want.log_prob(action))
    torch.testing.assert_close(distributions.categorical_entropy(logits), want.entropy())


def test_invalid_actions_add_no_entropy() -> None:
    logits = torch.tensor([[[-torch.inf, 0.0, 0.0]]])
    torch.testing.assert_close(distributions.categorical_entropy(logits), torch.tensor([[math.log(2)]]))
    assert torch.func.grad(lambda x: distributions.categorical_entropy(x).sum())(logits).isfinite().all()


def test_gaussian_by_hand() -> None:
    mean, log_std = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[math.log(2.0), 0.0]]])
    _, action = distributions.squashed_gaussian_sample(mean, log_std, torch.tensor([[[1.0, -1.0]]]))
    torch.testing.assert_close(action, torch.tensor([[[3.0, -1.0]]]))  # 1 + 2 * 1, 0 + 1 * -1
    # -.5 - .5 - ln 2 - ln(2 pi)
    want = -1 - math.log(2) - math.log(2 * math.pi)
    torch.testing.assert_close(distributions.gaussian_log_prob(mean, log_std, action), torch.tensor([[want]]))
    # ln 2 + 0 + ln(2 pi e)
    want = math.log(2) + math.log(2 * math.pi * math.e)
    torch.testing.assert_close(distributions.gaussian_entropy(log_std), torch.tensor([[want]]))


def test_gaussian_is_as_in_torch_with_one_std_a_member() -> None:
    mean, log_std = torch.randn(2, 5, 3, generator=generator()), torch.randn(2, 1, 3, generator=generator(1))
    action = torch.randn(2, 5, 3, generator=generator(2))
    want = reference.Independent(reference.Normal(mean, log_std.exp()), 1)
    torch.testing.assert_close(distributions.gaussian_log_prob(mean, log_std, action), want.log_prob(action))
    torch.testing.assert_close(distributions.gaussian_entropy(log_std).expand(2, 5), want.entropy())


def test_squashed_gaussian_is_as_in_torch() -> None:
    args = [torch.randn(2, 5, 3, generator=generator(s), dtype=torch.float64) for s in range(3)]
    action, pre_tanh = distributions.squashed_gaussian_sample(*args)
    torch.testing.assert_close(action, pre_tanh.tanh())
    normal = reference.Normal(args[0], args[1].exp())
    want = reference.TransformedDistribution(normal, [reference.TanhTransform(cache_size=1)])
    want = reference.Independent(want, 1)
    inner = pre_tanh.clamp(-3, 3)  # where atanh can still be trusted
    got = distributions.squashed_gaussian_log_prob(args[0], args[1], inner)
    torch.testing.assert_close(got, want.log_prob(inner.tanh()))


def test_squashed_gaussian_by_hand_and_far_out() -> None:
    zero = torch.zeros(1, 1, 1)
    # x = 0: log N(0) - log(1 - 0) = -.5 ln(2 pi)
    torch.testing.assert_close(
        distributions.squashed_gaussian_log_prob(zero, zero, zero), torch.full((1, 1), -0.5 * math.log(2 * math.pi))
    )
    # x = 50: tanh is 1 in float32; log(1 - tanh^2) -> 2 ln 2 - 2x = -98.6137
    got = distributions.squashed_gaussian_log_prob(zero + 50, zero, zero + 50)
    torch.testing.assert_close(got, torch.full((1, 1), -0.5 * math.log(2 * math.pi) + 100 - 2 * math.log(2)))


def test_epsilon_greedy_by_hand() -> None:
    q = torch.tensor([1.0, 3.0, 2.0, 0.0]).expand(2, 2, 4)
    # epsilon .4 over 4 actions: .1 each, the best .7; one epsilon for each environment of a member
    got = distributions.epsilon_greedy_probabilities(q, torch.tensor([[0.4, 0.0], [1.0, 0.4]]))
    some, none, all_ = [0.1, 0.7, 0.1, 0.1], [0.0, 1.0, 0.0, 0.0], [0.25] * 4
    torch.testing.assert_close(got, torch.tensor([[some, none], [all_, some]]))
    torch.testing.assert_close(
        distributions.epsilon_greedy_probabilities(q, torch.tensor([0.4, 1.0])),
        torch.tensor([[some, some], [all_, all_]]),
    )


def test_boltzmann_by_hand() -> None:
    q = torch.tensor([0.0, math.log(3.0)]).expand(2, 1, 2)
    # temperature 1: 1 : 3; temperature 1/2: 1 : 9
    got = distributions.boltzmann_probabilities(q, torch.tensor([1.0, 0.5]))
    torch.testing.assert_close(got, torch.tensor([[[0.25, 0.75]], [[0.1, 0.9]]]))


def test_members_do_not_mix_and_it_compiles_whole() -> None:
    def everything(a: torch.Tensor, b: torch.Tensor, u: torch.Tensor) -> list[torch.Tensor]:
        action = a.argmax(-1)
        return [
            distributions.categorical_log_prob(a, action),
            distributions.categorical_entropy(a),
            *distributions.squashed_gaussian_sample(a, b, u),
            distributions.squashed_gaussian_log_prob(a, b, u),
            distributions.epsilon_greedy_probabilities(a, u[:, 0, 0]),
            distributions.boltzmann_probabilities(a, u[:, :, 0]),
        ]

    args = [torch.rand(2, 3, 4, generator=generator(s)) for s in range(3)]
    before = everything(*args)
    for a, b in zip(torch.compile(everything, fullgraph=True, backend="eager")(*args), before, strict=True):
        torch.testing.assert_close(a, b)
    for x in args:
        x[0] = torch.nan
    for a, b in zip(everything(*args), before, strict=True):
        assert torch.equal(a[1], b[1])
