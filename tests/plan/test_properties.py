"""For any valid experiment: round trips keep its ids, and its ids follow what it does and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl import Classic, Constant, Cosine, Experiment, Exponential, Linear, Random, Steps, experiment
from rldsl.plan.expand import count, expand
from rldsl.plan.gin_bindings import GinBindings
from rldsl.plan.overrides import apply
from rldsl.spec.agent import Agent
from rldsl.spec.base import Kind, Spec, digest
from rldsl.spec.budget import Seeds, Target
from rldsl.spec.environment import Environment
from rldsl.spec.experiment import Trial
from rldsl.spec.gin_text import session_gin, to_gin
from rldsl.spec.launcher import Slurm
from rldsl.spec.net import Net
from rldsl.spec.optimizer import Optimizer
from rldsl.spec.schedule import Schedule
from rldsl.spec.search import Dimension, Grid, Nevergrad, Search
from rldsl.spec.session import Session
from tests.plan.strategies import experiments

NO_PART_OF_THE_WORK = ("budget.checkpoint_every", "on_end", "compute")
"""The fields of a trial that identity ignores, with all that is in them."""

ANOTHER = experiment("another").env(Classic("Acrobot-v1")).agent(Random()).frames(10).build()

relaxed = settings(deadline=None, max_examples=75)


def ids(experiment: Experiment) -> list[str]:
    return [planned.trial.id for planned in expand(experiment)]


def through_gin(text: str, base: Experiment = ANOTHER) -> Experiment:
    return apply([base], [GinBindings.from_text(text, "--gin")])[0].experiment


@relaxed
@given(experiments())
def test_json_gives_the_same_experiment_with_the_same_ids(made: Experiment) -> None:
    again = Experiment.parse(json.loads(json.dumps(made.data(), allow_nan=False)))
    assert again == made
    assert again.data() == made.data()
    assert ids(again) == ids(made)


@relaxed
@given(experiments())
def test_gin_gives_the_same_experiment_with_the_same_ids(made: Experiment) -> None:
    again = through_gin(to_gin(made))
    assert again == made
    assert ids(again) == ids(made)


@relaxed
@given(experiments(search=False), st.integers(0, 2_000_000))
def test_the_gin_of_a_session_gives_that_session_alone(made: Experiment, seed: int) -> None:
    session = Session(experiment=made.name, trial=made.base(), seed=seed, target=made.target)
    again = through_gin(session_gin(session))
    assert [f"{id}-s{one}" for id in ids(again) for one in again.session_seeds] == [session.id]
    assert (again.name, again.target) == (ANOTHER.name, ANOTHER.target), "what a session is called is no setting"


@relaxed
@given(experiments())
def test_the_count_is_the_number_of_trials(made: Experiment) -> None:
    chosen_as_it_goes = made.search is not None and isinstance(made.search.method, Nevergrad)
    assert len(ids(made)) == (0 if chosen_as_it_goes else count(made))


def changes(spec: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a spec and of the specs in it, by path, with a copy of the whole in which it alone differs."""
    for name in type(spec).model_fields:
        value, here = getattr(spec, name), f"{path}.{name}" if path else name
        yield here, spec.model_copy(update={name: another(value)})
        if isinstance(value, Spec):
            for inner, changed in changes(value, here):
                yield inner, spec.model_copy(update={name: changed})


def another(value: Any) -> Any:
    """A value that differs as little as can be."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return math.nextafter(value, math.inf)
        case str():
            return value + "x"
        case tuple():
            return (*value, 1)
        case dict():
            return {**value, "another": 1}
    return 1 if value is None else None


def is_work(path: str) -> bool:
    return not any(path == one or path.startswith(f"{one}.") for one in NO_PART_OF_THE_WORK)


@relaxed
@given(experiments(search=False))
def test_every_field_of_a_trial_changes_its_id_unless_it_is_no_part_of_the_work(made: Experiment) -> None:
    trial = made.base()
    seen = {}
    for path, changed in changes(trial):
        seen[path] = digest(changed)
        assert (seen[path] != trial.id) == is_work(path), path
    assert {"agent", "agent.kind", "env.id", "env.num_envs", "budget.frames", *NO_PART_OF_THE_WORK} <= seen.keys()


EXAMPLES = {
    "constant": Constant(1),
    "linear": Linear(1),
    "cosine": Cosine(1),
    "exponential": Exponential(2, 1),
    "steps": Steps((1,), (2, 1)),
}


def every_kind() -> Iterator[Kind]:
    for family in (Agent, Environment, Net, Optimizer, Schedule):
        for kind, model in family.kinds.items():
            if not model.__module__.startswith("rldsl."):
                continue
            if family is Environment:
                literal = model.model_fields["id"].annotation
                yield model(id=getattr(literal, "__args__", ["pkg:Mine-v0"])[0])
            else:
                yield EXAMPLES[kind] if family is Schedule else model()


@pytest.mark.parametrize("spec", list(every_kind()), ids=lambda spec: type(spec).__name__)
def test_every_field_of_every_kind_is_part_of_the_identity(spec: Kind) -> None:
    unchanged = [path for path, changed in changes(spec) if digest(changed) == digest(spec)]
    assert unchanged == []


@relaxed
@given(experiments(search=False))
def test_what_an_experiment_is_called_and_how_often_it_runs_is_no_part_of_a_trial(made: Experiment) -> None:
    search = Search(dimensions=(Dimension(paths=("budget.frames",), axis=Grid((1000, 2000))),))
    others = {
        "name": "something/else",
        "seeds": Seeds(made.seeds.count + 1, first=made.seeds.first + 1),
        "target": Target(1234.5),
        "search": search,
        "launcher": Slurm(hours=1),
        "after": ("another/one",),
    }
    assert others.keys() == Experiment.model_fields.keys() - Trial.model_fields.keys()
    for name, value in others.items():
        changed = made.with_(**{name: value})
        assert changed != made
        assert changed.base().id == made.base().id, name
