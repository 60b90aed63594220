"""Soft updates of target networks, with a tau for each member."""

import torch
from torch import Tensor

from rldsl.maths.target_networks import soft_update


def test_soft_update_by_hand() -> None:
    target, online = torch.zeros(3, 2), torch.tensor([[10.0, 20.0]]).repeat(3, 1)
    soft_update(target, online, torch.tensor([0.1, 1.0, 0.0]))
    torch.testing.assert_close(target, torch.tensor([[1.0, 2.0], [10.0, 20.0], [0.0, 0.0]]))
    soft_update(target, online, torch.tensor([0.1, 1.0, 0.0]))
    torch.testing.assert_close(target[0], torch.tensor([1.9, 3.8]))  # 1 + .1 * 9, 2 + .1 * 18


def test_it_compiles_without_graph_breaks() -> None:
    def move(target: Tensor, online: Tensor, tau: Tensor) -> Tensor:
        soft_update(target, online, tau)
        return target

    tau, online = torch.tensor([0.1, 0.9]), torch.rand(2, 3, generator=torch.Generator().manual_seed(0))
    expected = move(torch.zeros(2, 3), online, tau)
    torch.testing.assert_close(
        torch.compile(move, fullgraph=True, backend="eager")(torch.zeros(2, 3), online, tau), expected
    )
