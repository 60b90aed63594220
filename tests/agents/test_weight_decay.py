"""Weight decay applies to the weights of layers, and to nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from rldsl import SAC, AdamW
from rldsl.agents.update import Batch, Update
from rldsl.compile import Compilation
from rldsl.nets.layout import Layout, Params
from tests.train.packs import PENDULUM, REPLAY, session, train

NAMES = ("trunk.0.weight", "trunk.0.bias", "trunk.0.scale", "trunk.0.shift", "head.weight", "log_std", "log_alpha")


def no_gradient(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
    loss = sum(0.0 * param.flatten(1).sum(1) for param in params.values())
    assert isinstance(loss, Tensor)
    return loss, loss.unsqueeze(1)


@pytest.mark.parametrize("split", [False, True], ids=["one tensor", "a tensor per parameter"])
@pytest.mark.parametrize("per_parameter", [False, True], ids=["lr per member", "lr per parameter"])
def test_only_weights_of_layers_decay(split: bool, per_parameter: bool) -> None:
    layout = Layout.of(dict.fromkeys(NAMES, (2, 3)))
    update = Update(layout, torch.ones(2, layout.size), AdamW(weight_decay=0.5), no_gradient, Compilation(split))
    update._steps = torch.no_grad()(update._all_steps)  # without the compiler
    lr = torch.tensor([0.1, 0.2])
    update(layout.per_parameter(lr, {}) if per_parameter else lr, torch.full((2,), torch.inf), {}, {})
    for name, param in layout.views(update.flat).items():
        decayed = torch.tensor([0.95, 0.9]) if name.endswith("weight") else torch.ones(2)
        torch.testing.assert_close(param, decayed.view(2, 1, 1).expand_as(param))


def test_a_fixed_alpha_does_not_drift(tmp_path: Path) -> None:
    agent = SAC(**REPLAY, alpha=0.2, lr=0.05, optimizer=AdamW(weight_decay=0.1))
    learner = train(tmp_path, session(agent, PENDULUM)).agent
    assert learner.updates > 50
    np.testing.assert_allclose(learner.metrics()["alpha"], 0.2, rtol=1e-6)
