"""The worked example of an off-policy agent in docs/extending.md: it learns, packs, resumes exactly and is exported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldsl import MLP
from rldsl.play.export import export
from rldsl.spec.user_file import load_user_file
from tests.agents.tiny import Throw
from tests.train.packs import PENDULUM, REPLAY, curve, session, train

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(scope="module")
def td3() -> Iterator[Any]:
    """The spec class of the example."""
    yield load_user_file(EXAMPLES / "td3.py").TD3
    sys.path.remove(str(EXAMPLES))


def test_it_finds_the_best_number(td3: Any, tmp_path: Path) -> None:
    net = MLP((16,), activation="relu")
    agent = td3(lr=0.005, net=net, batch=32, learning_starts=400, updates_per_frame=0.5, noise=0.3, tau=0.05)
    pack = train(tmp_path, session(agent, Throw(num_envs=8), frames=3200))
    chosen = pack.agent.policy(1, True, [0])(np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool))
    assert chosen.item() == pytest.approx(0.3, abs=0.15)
    assert np.isfinite(curve(pack.directories[0].path)["value_loss"][-1])


def test_members_of_a_pack_are_what_they_are_alone(td3: Any, tmp_path: Path) -> None:
    agents = [td3(**REPLAY, lr=1e-3), td3(**REPLAY, lr=1e-2, tau=0.1, gamma=0.9)]
    sessions = [session(agent, PENDULUM, seed) for seed, agent in enumerate(agents)]
    together = train(tmp_path / "together", *sessions)
    for one, directory in zip(sessions, together.directories, strict=True):
        alone = train(tmp_path / "alone", one)
        assert alone.agent.updates > 50
        for name, column in curve(alone.directories[0].path).items():
            np.testing.assert_allclose(curve(directory.path)[name], column, rtol=1e-3, atol=1e-4, err_msg=name)


def test_it_resumes_exactly(td3: Any, tmp_path: Path) -> None:
    one = session(td3(**REPLAY, policy_delay=3), PENDULUM)
    whole = train(tmp_path / "whole", one)
    for frame in (100, 300):
        train(tmp_path / "parts", one, stop=lambda pack, frame=frame: "stop" if pack.frame >= frame else None)
    parts = train(tmp_path / "parts", one)
    resumed = curve(parts.directories[0].path)
    for name, column in curve(whole.directories[0].path).items():
        np.testing.assert_array_equal(resumed[name], column, err_msg=name)


def test_it_is_exported(td3: Any, tmp_path: Path) -> None:
    pack = train(tmp_path, session(td3(**REPLAY), PENDULUM))
    assert export(pack.directories[0], tmp_path / "policy.pt2").outputs == {"action": "float32 [N, 1]"}
