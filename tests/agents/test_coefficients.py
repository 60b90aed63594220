"""Numbers of each member's own, that schedules move."""

from __future__ import annotations

import pytest
import torch

from rldsl import PPO, Agent, Cosine, Exponential, Linear, Steps
from rldsl.agents.coefficients import Coefficients

CPU = torch.device("cpu")


def coefficients(*agents: Agent, frames: int = 1000) -> Coefficients:
    return Coefficients(agents, frames, CPU)


def test_every_member_has_its_own_number_and_its_own_schedule() -> None:
    falling = (Linear(1.0, 0.5), Linear(1.0, 0.0, over=500), Cosine(1.0), Exponential(1.0, 0.01))
    one = coefficients(*(PPO(lr=rate) for rate in (0.1, *falling, Steps((300,), (1, 2)))))
    for frame, expected in {
        0: [0.1, 1.0, 1.0, 1.0, 1.0, 1.0],
        500: [0.1, 0.75, 0.0, 0.5, 0.1, 2.0],
        1000: [0.1, 0.5, 0.0, 0.0, 0.01, 2.0],
    }.items():
        assert one.tensor("lr", frame).tolist() == pytest.approx(expected)


def test_several_fields_at_once() -> None:
    one = coefficients(PPO(clip=0.1, entropy=0.5), PPO(clip=Linear(0.4), entropy=0.0))
    found = one.at(500, "clip", "entropy")
    assert {name: values.tolist() for name, values in found.items()} == {
        "clip": pytest.approx([0.1, 0.2]),
        "entropy": pytest.approx([0.5, 0.0]),
    }


def test_a_default_stands_for_none() -> None:
    one = coefficients(PPO(max_grad_norm=None), PPO(max_grad_norm=0.5))
    assert one.tensor("max_grad_norm", 0, default=float("inf")).tolist() == [float("inf"), 0.5]


def test_a_constant_is_made_once_and_a_schedule_whenever_it_moved() -> None:
    one = coefficients(PPO(gamma=0.9, lr=Linear(1.0)))
    assert one.tensor("gamma", 0) is one.tensor("gamma", 999)
    assert one.tensor("lr", 0) is not one.tensor("lr", 1)
    assert one.tensor("lr", 7) is one.tensor("lr", 7)
