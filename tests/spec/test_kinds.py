"""Open families: a kind says which class it is, and a user's own class joins by being defined."""

from __future__ import annotations

import json
from typing import ClassVar, Literal

import pytest
from pydantic import Field

from rldsl import MLP, PPO, Agent, Classic, Conv, Environment, Net, Random, SpecError, experiment
from rldsl.plan.expand import expand
from rldsl.spec.base import Spec
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.session import Session


class OnlyButtons(Agent, frozen=True):
    """A user's own agent, for discrete actions alone."""

    kind: Literal["only-buttons"] = "only-buttons"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})
    boldness: float = Field(default=0.5, ge=0, le=1, description="How bold")
    body: Net = Field(default=MLP((8,)), description="A built-in part of a user's own agent")


class Maze(Environment, frozen=True):
    """A user's own environment."""

    kind: Literal["maze"] = "maze"
    id: str = Field(kw_only=False, description="Which maze")
    walls: int = Field(default=3, ge=0, description="How many walls")


class WideNet(Net, frozen=True):
    """A user's own network, as a part of a built-in agent."""

    kind: Literal["wide"] = "wide"
    width: int = Field(default=9, gt=0, description="Units")


def own_trial() -> Trial:
    return Trial(agent=OnlyButtons(boldness=0.25), env=Maze("round", num_envs=2), budget=Budget(100))


def test_data_becomes_the_class_that_its_kind_names() -> None:
    assert PPO(net={"kind": "conv", "hidden": [256]}).net == Conv(hidden=(256,))


def test_the_name_of_a_kind_stands_for_its_defaults() -> None:
    assert PPO(net="conv").net == Conv()
    assert PPO(optimizer="adamw").optimizer.weight_decay == 0.01


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"PPO\.net names no known net \(did you mean mlp\?\), got 'mpl'"):
        PPO(net="mpl")
    with pytest.raises(SpecError, match=r"names no known agent .*, got \{'kind': 'ppoo'\}"):
        Trial(agent={"kind": "ppoo"}, env=Classic("CartPole-v1"), budget=Budget(1e5))


@pytest.mark.parametrize("given", [3, MLP, ["mlp"], Random(), None])
def test_what_is_no_kind_of_the_family_is_refused(given: object) -> None:
    with pytest.raises(SpecError, match=r"PPO\.net (should be of the kind net|names no known net)"):
        PPO(net=given)


def test_a_users_own_kinds_round_trip_through_json() -> None:
    trial = own_trial()
    again = Trial.parse(json.loads(json.dumps(trial.data())))
    assert again == trial
    assert type(again.agent) is OnlyButtons
    assert type(again.env) is Maze
    assert again.id == trial.id


def test_a_users_own_kinds_plan_like_the_built_in_ones() -> None:
    built = experiment("mine").env(Maze("round")).agent(OnlyButtons()).frames(1e3).build()
    (planned,) = expand(built)
    assert built.name == "mine/only-buttons"
    session = Session(experiment=built.name, trial=planned.trial, seed=0)
    assert session.directory == f"round/only-buttons-{planned.trial.id}/seed-0"


def test_a_users_own_settings_are_part_of_the_identity() -> None:
    trial = own_trial()
    changed = [
        trial.with_(agent=OnlyButtons(boldness=0.75)),
        trial.with_(agent=OnlyButtons(boldness=0.25, body=WideNet())),
        trial.with_(env=Maze("square", num_envs=2)),
        trial.with_(env=Maze("round", num_envs=2, walls=4)),
    ]
    assert len({trial.id, *(one.id for one in changed)}) == 5


def test_a_users_own_net_is_a_part_of_a_built_in_agent() -> None:
    assert PPO(net=WideNet(width=3)).data()["net"]["width"] == 3
    assert PPO(net="wide").net == WideNet()
    with pytest.raises(SpecError, match=r"PPO\.net has no field 'widht'; did you mean width\?"):
        PPO(net={"kind": "wide", "widht": 3})


def test_a_users_own_kinds_are_in_the_json_schema() -> None:
    text = json.dumps(Experiment.model_json_schema())
    assert '"How bold"' in text
    assert '"How many walls"' in text


def test_two_classes_cannot_have_one_kind() -> None:
    known = dict(Agent.kinds), dict(Spec.models)
    with pytest.raises(SpecError, match=r"Impostor: the kind 'ppo' is taken by rldsl\.spec\.agent\.PPO"):

        class Impostor(Agent, frozen=True):
            """Another PPO."""

            kind: Literal["ppo"] = "ppo"

    assert Agent.kinds == known[0]
    assert Agent.kinds["ppo"] is PPO
    Spec.models.pop("Impostor", None)


def test_a_discrete_agent_is_refused_in_a_continuous_environment() -> None:
    sentence = "OnlyButtons needs discrete actions, and those of Pendulum-v1 are continuous"
    with pytest.raises(SpecError, match=sentence):
        Trial(agent=OnlyButtons(), env=Classic("Pendulum-v1"), budget=Budget(100))
    with pytest.raises(SpecError, match=sentence):
        experiment("x").env(Classic("Pendulum-v1")).agent(OnlyButtons())


def test_a_discrete_agent_is_fine_where_the_spec_cannot_know_the_actions() -> None:
    assert own_trial().env.actions is None
