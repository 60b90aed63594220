"""A frozen plan: one JSON document, read back exactly, refused if it was changed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from rldsl import PPO, Classic, Random, SpecError, experiment, grid
from rldsl.plan.overrides import Options, apply, parse_set
from rldsl.plan.plan import Plan, load_plan, make_plan
from rldsl.spec.base import SCHEMA
from rldsl.store.errors import StoreError
from rldsl.store.plan_file import read_plan, save_plan, write_plan

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).frames(1e5).seeds(2).target(400)


@pytest.fixture
def plan() -> Plan:
    declared = [CARTPOLE.agent(Random()).build(), CARTPOLE.agent(PPO()).search(gamma=grid(0.9, 0.99)).build()]
    return make_plan(apply(declared, [Options([parse_set("budget.frames=2e5")])]))


@pytest.fixture
def file(plan: Plan, tmp_path: Path) -> Path:
    plan.save(tmp_path / "frozen.json")
    return tmp_path / "frozen.json"


def test_a_plan_comes_back_exactly(plan: Plan, file: Path) -> None:
    again = load_plan(file)
    assert again.parts == plan.parts
    assert list(again.rows()) == list(plan.rows())
    assert [session.id for row in again.rows() for session in row.sessions()] == [
        session.id for row in plan.rows() for session in row.sessions()
    ]


def test_a_plan_is_one_json_document(plan: Plan, file: Path) -> None:
    document = json.loads(file.read_text())
    assert [one["name"] for one in document["experiments"]] == ["cartpole/random", "cartpole/ppo-grid"]
    assert [one["id"] for one in document["trials"]] == [row.id for row in plan.rows()]
    assert document["trials"][1]["spec"]["agent"]["gamma"] == 0.9
    assert document["experiments"][0]["overrides"][0]["path"] == "budget.frames"


def test_a_plan_that_was_laid_out_anew_is_the_same_plan(plan: Plan, file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()), indent=4))
    assert list(load_plan(file).rows()) == list(plan.rows())


def test_a_plan_without_trials_is_a_document_too() -> None:
    out = io.StringIO()
    write_plan(out, {"schema": 1}, [])
    assert json.loads(out.getvalue())["trials"] == []


def resealed(file: Path, good: str, bad: str) -> None:
    """Changes the first such place of a plan and gives it the checksum that fits."""
    changed = json.loads(file.read_text().replace(good, bad, 1))
    trials = changed.pop("trials")
    with file.open("w") as out:
        write_plan(out, {name: value for name, value in changed.items() if name not in ("format", "sha256")}, trials)


def test_a_plan_that_was_changed_by_hand_is_refused(file: Path) -> None:
    file.write_text(file.read_text().replace('"gamma": 0.9,', '"gamma": 0.8,'))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"the plan .*frozen\.json was changed by hand or damaged: its checksum"):
            load_plan(file)
        file.write_text(json.dumps(json.loads(file.read_text()), indent=2))


def test_a_trial_that_was_changed_by_hand_is_refused(file: Path) -> None:
    resealed(file, '"gamma": 0.9,', '"gamma": 0.8,')
    with pytest.raises(SpecError, match=r"frozen\.json: trial \w+ was changed by hand, it is \w+ now"):
        list(load_plan(file).rows())


def test_a_trial_that_makes_no_sense_is_refused(file: Path) -> None:
    resealed(file, '"gamma": 0.9,', '"gamma": 9,')
    with pytest.raises(SpecError, match=r"frozen\.json, trial \w+\.agent\.gamma should be less than or equal to 1"):
        list(load_plan(file).rows())


def test_a_plan_of_another_schema_is_refused(file: Path) -> None:
    resealed(file, f'"schema": {SCHEMA}', '"schema": 99')
    with pytest.raises(SpecError, match=r"has schema 99, this version has \d+: make a new plan"):
        load_plan(file)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"seeds": [0, 1]', '"seeds": [0, -1]'),
        ('"differs"', '"differz"'),
        ('"overrides"', '"overridez"'),
        ('"experiment": "cartpole/random"', '"experiment": "x"'),
    ],
)
def test_a_plan_with_damaged_fields_is_one_sentence(file: Path, good: str, bad: str) -> None:
    resealed(file, good, bad)
    with pytest.raises(StoreError, match=r"the plan .*frozen\.json is damaged: ") as caught:
        list(load_plan(file).rows())
    assert "\n" not in str(caught.value)


def test_a_plan_that_is_cut_short_is_refused(file: Path) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:2]) + "\n")
    with pytest.raises(StoreError, match=r"the plan .*frozen\.json is cut short"):
        list(load_plan(file).rows())


@pytest.mark.parametrize("text", ["", "{}", "[]", "hello", '{"format": "rldsl.plan"}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"other\.json is not a plan"):
        read_plan(path)


def test_a_plan_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read the plan .*nope\.json: no such file or directory"):
        load_plan(tmp_path / "nope.json")


def test_a_plan_that_cannot_be_finished_leaves_the_old_one(file: Path) -> None:
    before = file.read_text()

    def trials():
        yield {"id": "first"}
        raise SpecError("the second is wrong")

    with pytest.raises(SpecError, match="the second is wrong"):
        save_plan(file, {}, trials())
    assert file.read_text() == before
    assert list(file.parent.iterdir()) == [file]
