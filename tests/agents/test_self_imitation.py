"""Self-imitation: the returns of terminated and of truncated episodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl import MLP, PPO, SIL, Linear
from tests.agents.test_solves import solve, values
from tests.agents.tiny import Endless

AGENT = PPO(
    rollout=12,
    minibatch=48,
    epochs=2,
    lr=Linear(0.02),
    net=MLP((16,)),
    gamma=0.5,
    lam=0.0,
    sil=SIL(batch=32, updates=1),
)


@pytest.mark.parametrize(("ends", "expected"), [("truncated", (1.0, 2.0, 2.0)), ("terminated", (0.75, 1.5, 1.0))])
def test_a_time_limit_does_not_end_the_return(ends: str, expected: tuple[float, ...], tmp_path: Path) -> None:
    """From A to B for 0, then 1 for each step in B: with gamma = 0.5, 1 for ever is worth 2."""
    pack = solve(tmp_path, AGENT, Endless(num_envs=4, ends=ends), frames=4800)
    buffer = pack.agent.imitation.buffers[0]
    returns = np.roll(buffer.returns[: buffer.filled], -buffer.next)[-12:].reshape(4, 3)
    np.testing.assert_allclose(returns, np.tile(expected, (4, 1)), atol=0.1)
    if ends == "truncated":
        np.testing.assert_allclose(values(pack, np.eye(2)), (1.0, 2.0), atol=0.1)
