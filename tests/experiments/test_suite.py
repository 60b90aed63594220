"""The benchmark suite: each pair of algorithm and environment of the reference is declared; planning it is light."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from rldsl import DQN, PPO
from rldsl.cli.load import load
from rldsl.plan.overrides import apply
from rldsl.plan.plan import make_plan
from rldsl.spec.experiment import Experiment
from tests.project import ROOT, environment

EXPERIMENTS = ROOT / "experiments"
FAMILIES = ("classic", "box2d", "mujoco", "atari", "playground")
HEAVY = ("torch", "gymnasium", "jax", "mujoco", "scipy")
PLAN_ALL = """
import json, sys, time
from pathlib import Path
from rldsl.cli.load import load
from rldsl.plan.overrides import apply
from rldsl.plan.plan import make_plan

began = time.process_time()
trials = sum(1 for file in sys.argv[1:] for row in make_plan(apply(load(Path(file)), [])).rows())
seconds = time.process_time() - began
print(json.dumps({"trials": trials, "seconds": seconds, "modules": sorted(sys.modules)}))
"""


@dataclass(frozen=True)
class Pair:
    """An algorithm in an environment, and how the benchmark runs it."""

    env: str
    algorithm: str
    frames: int
    num_envs: int
    seeds: int
    log_every: int


def experiment_files() -> list[Path]:
    return sorted(path for path in EXPERIMENTS.glob("*/*.py") if not path.name.endswith("_settings.py"))


def reference() -> dict[Pair, float | None]:
    """The pairs of reference_suite.csv, and their targets where they have one."""
    lines = (Path(__file__).parent / "reference_suite.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    numbers = ("frames", "num_envs", "seeds", "log_every")
    return {
        Pair(row["env"], row["algorithm"], *(int(row[name]) for name in numbers)): (
            float(row["target"]) if row["target"] else None
        )
        for row in rows
    }


def algorithm(experiment: Experiment) -> str:
    """What the reference calls the agent of an experiment."""
    agent = experiment.agent
    if isinstance(agent, DQN) and agent.prioritized is not None:
        return "DDQN+PER" if agent.double else "DQN+PER"
    if isinstance(agent, PPO) and agent.sil is not None:
        return "PPO+SIL"
    return {"crossq": "CrossQ"}.get(agent.kind, agent.kind.upper())


def pair(experiment: Experiment) -> Pair:
    budget = experiment.budget
    return Pair(
        env=experiment.env.id,
        algorithm=algorithm(experiment),
        frames=budget.frames,
        num_envs=experiment.env.num_envs,
        seeds=len(experiment.seeds),
        log_every=budget.log_interval,
    )


@pytest.fixture(scope="module")
def by_file() -> dict[Path, list[Experiment]]:
    """The experiments of every file, loaded as commands load them."""
    return {file: load(file) for file in experiment_files()}


@pytest.fixture(scope="module")
def experiments(by_file: dict[Path, list[Experiment]]) -> list[Experiment]:
    return [experiment for declared in by_file.values() for experiment in declared]


def test_every_pair_of_the_reference_is_declared_with_its_budget(experiments: list[Experiment]) -> None:
    declared = {pair(experiment) for experiment in experiments if experiment.search is None}
    missing = [one for one in reference() if one not in declared]
    assert len(reference()) == 292
    assert not missing


def test_targets_are_at_least_those_of_the_reference(experiments: list[Experiment]) -> None:
    asked = {one: score for one, score in reference().items() if score is not None}
    benchmark = [one for one in experiments if one.search is None and pair(one) in asked]
    easier = [one.name for one in benchmark if one.target is None or one.target.score < asked[pair(one)]]
    assert len({pair(one) for one in benchmark}) == len(asked)
    assert not easier


def test_names_are_unique_in_the_whole_suite(experiments: list[Experiment]) -> None:
    """`results add` names its files after experiments."""
    names = Counter(experiment.name for experiment in experiments)
    assert [name for name, count in names.items() if count > 1] == []


def test_no_trial_is_declared_twice(by_file: dict[Path, list[Experiment]]) -> None:
    ids = Counter(
        row.id for declared in by_file.values() for row in make_plan(apply(declared, [])).rows() if not row.differs
    )
    assert [trial for trial, count in ids.items() if count > 1] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_search(family: str, by_file: dict[Path, list[Experiment]]) -> None:
    assert any(
        experiment.sampled
        for file, declared in by_file.items()
        if file.parent.name == family
        for experiment in declared
    )


def test_planning_everything_takes_seconds_and_no_deep_learning_library() -> None:
    files = [str(file) for file in experiment_files()]
    ran = subprocess.run(
        [sys.executable, "-c", PLAN_ALL, *files],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    planned = json.loads(ran.stdout)
    assert planned["trials"] > 292
    assert not set(HEAVY) & set(planned["modules"])
    assert planned["seconds"] < 5
