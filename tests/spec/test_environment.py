"""Environments as data: wrappers, backends, time limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rldsl import Box2D, Gym, Random, SpecError, Wrapper, experiment
from rldsl.plan.gin_bindings import GinBindings
from rldsl.plan.overrides import apply
from rldsl.spec.base import digest
from rldsl.spec.environment import Environment
from rldsl.spec.gin_text import session_gin
from rldsl.spec.session import Session

CLIP = Wrapper("gymnasium.wrappers:ClipReward", kwargs={"max_reward": 1.0})
WRAPPED = Gym("mine:Maze", wrappers=("mine:Fog", CLIP))


def test_the_name_of_a_wrapper_stands_for_one_without_arguments() -> None:
    assert WRAPPED.wrappers == (Wrapper("mine:Fog"), CLIP)
    assert digest(WRAPPED) == digest(Gym("mine:Maze", wrappers=[Wrapper("mine:Fog", kwargs={}), CLIP]))


def test_wrappers_and_their_order_are_part_of_the_work() -> None:
    others = (Gym("mine:Maze"), Gym("mine:Maze", wrappers=(CLIP, "mine:Fog")), WRAPPED)
    assert len({digest(one) for one in others}) == 3


def test_wrappers_survive_json_and_gin(tmp_path: Path) -> None:
    assert Environment.parse(json.loads(json.dumps(WRAPPED.data()))) == WRAPPED
    plain = experiment("maze").env(Gym("mine:Other")).agent(Random()).frames(100).build()
    session = Session(experiment="maze/random", trial=plain.base().with_(env=WRAPPED), seed=0)
    (tmp_path / "config.gin").write_text(session_gin(session))
    (changed,) = apply([plain], [GinBindings.from_file(tmp_path / "config.gin")])
    assert changed.experiment.env == WRAPPED


def test_the_backend_of_box2d_is_part_of_the_work() -> None:
    assert digest(Box2D("LunarLander-v3")) == digest(Box2D("LunarLander-v3", backend="gymnasium"))
    assert digest(Box2D("LunarLander-v3")) != digest(Box2D("LunarLander-v3", backend="envpool"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Wrapper("TimeLimit"), "Wrapper.name should be 'module:Class', such as"),
        (lambda: Gym("A-v0", wrappers=("TimeLimit",)), "Gym.wrappers.0.name should be 'module:Class', such as"),
        (lambda: Gym("A-v0", wrappers=({"nam": "a:B"},)), "Gym.wrappers.0 has no field 'nam'; did you mean name?"),
        (lambda: Box2D("LunarLander-v3", backend="auto"), "Box2D.backend has no 'auto'; valid: gymnasium, envpool"),
        (lambda: Box2D("LunarLander-v3", max_episode_steps=0), "should be greater than 0, got 0"),
    ],
)
def test_what_is_wrong_is_one_sentence(make: object, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert sentence in caught.value.sentence


def test_a_backend_that_is_not_installed_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldsl.spec.environment.find_spec", lambda name: None)
    missing = "EnvPool is not installed; install it with pip install 'rldsl[envpool]'"
    assert Box2D("LunarLander-v3", backend="envpool").missing() == missing
    assert Box2D("LunarLander-v3").missing() is None
