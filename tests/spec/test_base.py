"""What every spec model is: frozen, described, closed, and sure of its numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from rldsl import MLP, PPO, Classic, Gym, Random, SpecError
from rldsl.spec.base import Kind, Spec
from rldsl.spec.budget import Budget, Evaluation, Seeds, Target
from rldsl.spec.experiment import Experiment, Trial

MODELS = [model for model in Spec.models.values() if model.__module__.startswith("rldsl.")]


def experiment() -> Experiment:
    return Experiment(name="x", agent=PPO(), env=Classic("CartPole-v1"), budget=Budget(1e5))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_model_is_frozen_closed_and_described(model: type[BaseModel]) -> None:
    assert model.model_config["frozen"]
    assert model.model_config["extra"] == "forbid"
    bare = [name for name, field in model.model_fields.items() if name != "kind" and not field.description]
    assert bare == (["id"] if model.__name__ == "Environment" else []), "each subclass describes its own id"
    assert model.__doc__


@pytest.mark.parametrize("path", ["name", "agent", "agent.gamma", "agent.net.hidden", "env.num_envs", "budget.frames"])
def test_assignment_is_refused_at_any_depth(path: str) -> None:
    *parents, name = path.split(".")
    node = experiment()
    for parent in parents:
        node = getattr(node, parent)
    before = getattr(node, name)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(node, name, before)


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(SpecError, match=r"PPO has no field 'gama'; did you mean gamma\?"):
        PPO(gama=0.99)


def test_an_unknown_field_is_refused_at_any_depth() -> None:
    data = experiment().data()
    data["agent"]["net"]["hiden"] = [32]
    with pytest.raises(SpecError, match=r"^x\.agent\.net has no field 'hiden'; did you mean hidden\?$"):
        Experiment.parse(data, root="x")


def test_an_unknown_field_like_no_other_lists_the_valid_ones() -> None:
    with pytest.raises(SpecError, match="MLP has no field 'qqq'; valid: activation, init, hidden, layer_norm"):
        MLP(qqq=1)


@pytest.mark.parametrize("given", [4_000_000, 4e6, 4000000.0])
def test_a_count_takes_whole_numbers_however_they_are_written(given: float) -> None:
    frames = Budget(given).frames
    assert frames == 4_000_000
    assert type(frames) is int


@pytest.mark.parametrize("given", [4.5, True, "4", None, float("inf"), float("nan"), [4]])
def test_a_count_takes_nothing_else(given: object) -> None:
    with pytest.raises(SpecError, match=r"Budget\.frames should be"):
        Budget(given)


@pytest.mark.parametrize("given", [0, -1, -4e6])
def test_a_count_is_positive(given: float) -> None:
    with pytest.raises(SpecError, match=r"Budget\.frames should be greater than 0, got"):
        Budget(given)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: PPO(gamma=1.01), "PPO.gamma should be less than or equal to 1, got 1.01"),
        (lambda: PPO(gamma=-0.1), "PPO.gamma should be greater than or equal to 0, got -0.1"),
        (lambda: PPO(gamma="high"), "PPO.gamma should be a valid number, got 'high'"),
        (lambda: PPO(gamma=float("nan")), "PPO.gamma should be a finite number, got nan"),
        (lambda: PPO(gamma=True), "PPO.gamma should be a valid number, got True"),
        (lambda: PPO(max_grad_norm=0), "PPO.max_grad_norm should be greater than 0, got 0"),
        (lambda: PPO(log_std=3), "PPO.log_std should be less than or equal to 2, got 3"),
        (lambda: PPO(squash=1), "PPO.squash should be a valid boolean, got 1"),
        (lambda: MLP((64, 0)), "MLP.hidden.1 should be greater than 0, got 0"),
        (lambda: MLP(activation="tan"), "MLP.activation has no 'tan'; did you mean tanh?"),
        (lambda: Classic("CartPole-v1", num_envs=0), "Classic.num_envs should be greater than 0, got 0"),
        (lambda: Classic("CartPol-v1"), "Classic.id has no 'CartPol-v1'; did you mean CartPole-v1"),
        (lambda: Classic(), "Classic.id is missing"),
        (lambda: Gym("Mine-v0", kwargs={"x": float("nan")}), "should be a finite number, got nan"),
        (lambda: Gym("Mine-v0", kwargs={"x": object()}), "Gym.kwargs.x input was not a valid JSON value"),
        (lambda: Seeds(0), "Seeds.count should be greater than 0, got 0"),
        (lambda: Seeds(1, first=-1), "Seeds.first should be greater than or equal to 0, got -1"),
        (lambda: Target("high"), "Target.score should be a valid number, got 'high'"),
        (lambda: Evaluation(100, episodes=0), "Evaluation.episodes should be greater than 0, got 0"),
        (lambda: Classic("CartPole-v1", 4), "Classic: takes 1 positional arguments (id), got 2"),
    ],
)
def test_a_value_outside_its_domain_is_one_sentence(make: object, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert sentence in caught.value.sentence
    assert "\n" not in str(caught.value)


def test_an_error_names_the_line_that_made_it() -> None:
    with pytest.raises(SpecError) as caught:
        PPO(gamma=2)
    assert caught.value.where.rpartition(":")[0].endswith("spec/test_base.py")


def test_a_changed_copy_is_validated_and_leaves_the_first_as_it_was() -> None:
    first = PPO()
    assert first.with_(gamma=0.5).gamma == 0.5
    assert first.gamma == 0.99
    with pytest.raises(SpecError, match="did you mean gamma"):
        first.with_(gama=0.5)


def test_json_round_trips_exactly() -> None:
    made = Trial(
        agent=PPO(gamma=0.1 + 0.2, lr=1 / 3, net=MLP((7, 8, 9))),
        env=Gym("pkg:Mine-v0", kwargs={"deep": {"list": [1, 2.5, None, "é"]}}),
        budget=Budget(1e6, checkpoint_every=3),
        evaluation=Evaluation(10_000),
    )
    again = Trial.parse(json.loads(json.dumps(made.data())))
    assert again == made
    assert again.data() == made.data()
    assert type(again.agent) is PPO
    assert again == Trial.model_validate_json(made.model_dump_json())


def test_json_holds_the_defaults() -> None:
    assert Random().data() == {"kind": "random"}
    assert PPO().data()["gamma"] == 0.99
    assert PPO().data()["net"]["hidden"] == [64, 64]


def objects(schema: object) -> Iterator[dict[str, Any]]:
    """Every object inside a JSON schema, itself first."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for inner in schema.values() if isinstance(schema, dict) else schema:
            yield from objects(inner)


def test_the_json_schema_has_every_kind_and_every_description() -> None:
    schema = Experiment.model_json_schema()
    assert json.loads(json.dumps(schema)) == schema
    described: dict[str, dict[str, Any]] = {
        one["title"]: one["properties"] for one in objects(schema) if "properties" in one and "title" in one
    }
    concrete = [model for model in MODELS if issubclass(model, Kind) and model in model.kinds.values()]
    for model in concrete:
        if model.family().__name__ != "Launcher":
            assert described[model.__name__]["kind"]["const"] == model.model_fields["kind"].default
            for name, field in model.model_fields.items():
                assert name == "kind" or described[model.__name__][name]["description"] == field.description
    assert {"PPO", "Random", "MuJoCo", "Recurrent", "AdamW", "Steps", "Asha", "IntUniform"} <= described.keys()
    assert schema["properties"]["budget"]["description"] == "Training budget and log interval"


def test_every_reference_of_the_json_schema_leads_somewhere() -> None:
    schema = Experiment.model_json_schema()
    references = {one["$ref"] for one in objects(schema) if "$ref" in one}
    assert references
    assert references <= {f"#/$defs/{name}" for name in schema["$defs"]}
