"""`rldsl envs`: what is listed is what is there."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from rldsl.cli.envs import select_envs
from rldsl.envs.contract import Discrete
from rldsl.spec.implementation import implementation
from rldsl.spec.known import ANY_OTHER, Known, known
from tests.project import Project

LOADED = [one for one in known() if one.env.kind in ("classic", "box2d", "mujoco") or one.env.id == "Pong"]


@pytest.mark.parametrize("one", LOADED, ids=lambda one: f"{one.env.id}-{one.backend}")
def test_what_is_known_of_an_environment_is_true(one: Known) -> None:
    if missing := one.env.missing():
        pytest.skip(missing)
    with closing(implementation(one.env)(one.env, 1, 1)) as env:
        spaces = env.spaces
        assert one.exact_resume == env.exact_resume
    assert one.observation == f"{'x'.join(map(str, spaces.observation_shape))} {spaces.observation_dtype}"
    if isinstance(spaces.action, Discrete):
        assert one.actions in ("Discrete", f"Discrete({spaces.action.n})")
    else:
        assert one.actions == f"Box({spaces.action.shape[0]})"


def test_families_and_parts_of_ids_choose() -> None:
    assert len(select_envs(["atari"], fold=True)) == 104
    assert {line.first.env.id for line in select_envs(["LUNAR"], fold=True)} == {
        "LunarLander-v3",
        "LunarLanderContinuous-v3",
    }
    folded = {line.first.env.kind: line.folded for line in select_envs([], fold=True)}
    assert folded["atari"] == 104 and folded["mujoco"] == 1
    assert len(select_envs([], fold=False)) == len(list(known()))
    assert [line.first for line in select_envs(["gym"], fold=True)] == [ANY_OTHER]


def test_the_list_is_a_table_or_json_and_loads_nothing_heavy(project: Project) -> None:
    ran = project.rldsl("envs")
    assert ran.returncode == 0
    assert any(
        line.split() == ["mujoco", "Hopper-v5", "11", "float64", "Box(3)", "mujoco", "exact"]
        for line in ran.stdout.splitlines()
    )
    rows = [line for line in ran.stdout.splitlines() if line.split()[-1] in ("exact", "reset")]
    assert len(rows) == 27 and max(map(len, map(str.rstrip, rows))) <= 84, "with gaps of one, 80 columns hold it"
    listed = json.loads(project.rldsl("envs", "lander", "--json").stdout)
    assert [one["backend"] for one in listed] == ["gymnasium", "envpool"] * 2
    timed = project.python("-X", "importtime", "-c", "from rldsl.cli.app import run_rldsl; run_rldsl(['envs'])")
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in timed.stderr.splitlines()}
    assert "rldsl" in loaded and not loaded & {"torch", "gymnasium", "jax", "mujoco", "envpool"}


def test_an_unknown_name_is_refused(project: Project) -> None:
    ran = project.rldsl("envs", "Hoppper")
    assert ran.returncode == 2
    assert (
        ran.stderr.startswith("error: there is no environment 'Hoppper'; did you mean ") and "Hopper-v5" in ran.stderr
    )


def test_speeds_are_measured(project: Project) -> None:
    ran = project.rldsl("envs", "CartPole-v1", "gym", "--bench", "--seconds", "0.05", "--num-envs", "4", "--json")
    measured, other = json.loads(ran.stdout)
    assert measured["steps_per_second"] > 100 and "steps_per_second" not in other
    shown = project.rldsl("envs", "CartPole", "--bench", "--seconds", "0.05")
    assert "steps/s" in shown.stdout and "16 environments together, 1 thread, random actions" in shown.stdout
