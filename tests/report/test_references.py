"""Published scores: the data that comes with the package, and which of them is closest to a result."""

from __future__ import annotations

from collections import Counter

import pytest

from rldsl import A2C, DQN, PPO, SAC, SIL, CrossQ, Prioritized, Random
from rldsl.report.references import (
    PROTOCOLS,
    SAME_METRIC,
    algorithm_name,
    closest_reference,
    matching,
    published_targets,
    references,
)
from rldsl.spec.agent import Agent


def test_every_score_has_its_frames_protocol_and_source() -> None:
    assert len(references()) > 500
    assert all(one.frames > 0 and one.protocol in PROTOCOLS and one.source for one in references())
    assert Counter(one.protocol for one in references())[SAME_METRIC] == 292


def test_a_target_belongs_to_one_environment() -> None:
    names = [one.env for one in published_targets()]
    assert len(set(names)) == len(names) > 60


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (PPO(), "PPO"),
        (PPO(sil=SIL()), "PPO+SIL"),
        (DQN(), "DQN"),
        (DQN(double=True, prioritized=Prioritized()), "DDQN+PER"),
        (CrossQ(), "CrossQ"),
        (A2C(), "A2C"),
        (Random(), "random policy"),
    ],
)
def test_algorithms_are_named_as_in_the_literature(agent: Agent, name: str) -> None:
    assert algorithm_name(agent) == name


def test_the_same_metric_environment_and_frames_are_closest() -> None:
    one = closest_reference("Hopper-v5", PPO(), 4_000_000)
    assert one is not None
    assert (one.env, one.frames, one.protocol) == ("Hopper-v5", 4_000_000, SAME_METRIC)


def test_with_other_frames_training_scores_of_an_earlier_version_are_closer() -> None:
    """SLM-Lab's SAC has three times the frames; CleanRL's has the same, in Hopper-v4."""
    one = closest_reference("Hopper-v5", SAC(), 1_000_000)
    assert one is not None
    assert (one.env, one.frames, one.protocol) == ("Hopper-v4", 1_000_000, "training")


def test_without_a_published_score_there_is_no_reference() -> None:
    assert closest_reference("CartPole-v1", Random(), 1000) is None
    assert closest_reference("MyEnv-v0", PPO(), 1000) is None


def test_an_environment_is_found_in_any_version_or_by_a_part_of_its_id() -> None:
    targets, scores = matching("hopper-v5")
    assert {one.env for one in scores} == {"Hopper-v3", "Hopper-v4", "Hopper-v5"}
    assert [one.target for one in targets] == [2000.0]
    assert {one.env for one in matching("pendulum")[1]} == {"Pendulum-v1"}
    assert "InvertedPendulum-v2" in {one.env for one in matching("pendul")[1]}
    assert len(matching(None)[1]) == len(references())
    assert matching("nothing like it") == ([], [])
