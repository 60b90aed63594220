"""The source of an experiment file: the same trial, formatted, importing nothing but rldsl."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rldsl import PPO, Classic, Environment, Experiment, Linear, MuJoCo, Random, Slurm, SpecError, experiment
from rldsl.builders.source import experiment_source
from rldsl.cli.load import load
from rldsl.spec.agent import Agent
from rldsl.spec.experiment import Trial

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for path in (ROOT / "experiments").rglob("*.py") if not path.name.endswith("_settings.py"))
RUFF = [sys.executable, "-m", "ruff"]


def declared() -> list[Experiment]:
    """Every experiment of the benchmark, without its search."""
    found = [one for file in FILES for one in load(file)]
    return [one.model_copy(update={"search": None}) for one in found]


def formatting_problems(folder: Path, width: int) -> str:
    """What ruff would change: its default rules for imports, and its formatter."""
    options = ["--isolated", "--line-length", str(width)]
    form = subprocess.run([*RUFF, "format", "--diff", *options, str(folder)], capture_output=True, text=True)
    lint = subprocess.run(
        [*RUFF, "check", "--select", "E4,E7,E9,F,I", *options, str(folder)], capture_output=True, text=True
    )
    return form.stdout + (lint.stdout if lint.returncode else "")


def test_every_benchmark_can_be_written_and_loaded_again(tmp_path: Path) -> None:
    experiments = declared()
    assert len(experiments) > 60
    for number, one in enumerate(experiments):
        path = tmp_path / f"written_{number}.py"
        path.write_text(experiment_source(one, f"{one.name}, written from its spec."))
        (loaded,) = load(path)
        assert loaded == one, one.name
        assert Trial.parse(loaded.base().data()).id == one.base().id
    assert not formatting_problems(tmp_path, 88)
    assert not formatting_problems(tmp_path, 120)


@pytest.mark.parametrize(
    "builder",
    [
        experiment("cartpole").env(Classic("CartPole-v1")).agent(PPO()).frames(1e5),
        experiment("cartpole").env(Classic("CartPole-v1")).agent(PPO(lr=Linear(1e-3), gamma=0.98)).frames(1e5).seeds(4),
        experiment("a-rather-long-name-of-an-experiment/of-two-parts").env(Classic("CartPole-v1")).agent(PPO())
        .frames(1e5),
        experiment("hopper").env(MuJoCo("Hopper-v5", options={"healthy_z_range": [0.7, None]})).agent(PPO()).frames(4e6)
        .named("hopper-tuned").seeds(4, first=100).target(2000).evaluate(1e5).compute(threads=2).checkpoint_every(1e5),
        experiment("cartpole").env(Classic("CartPole-v1")).agent(PPO()).frames(1e5).on(Slurm(partition="gpu")),
    ],
)  # fmt: skip
def test_each_part_is_written(builder: object, tmp_path: Path) -> None:
    one = builder.build()  # type: ignore[attr-defined]
    path = tmp_path / "written.py"
    path.write_text(experiment_source(one, "Written."))
    assert load(path) == [one]
    assert not formatting_problems(path, 88)
    assert not formatting_problems(path, 120)


def test_classes_of_the_user_are_refused() -> None:
    class Mine(Agent, frozen=True):
        kind: str = "mine-of-source"

    one = experiment("cartpole").env(Classic("CartPole-v1")).agent(Mine()).frames(1e5).build()
    with pytest.raises(SpecError, match="uses Mine, which rldsl does not define"):
        experiment_source(one, "Written.")


def test_a_module_of_others_is_not_written_into_a_file() -> None:
    env = Environment.kinds["gym"].parse({"kind": "gym", "id": "module_of_others:Env-v0"})
    made = experiment("x").agent(Random()).env(env).frames(100).build()
    with pytest.raises(SpecError, match=r"x/random cannot be written as a file: .* does not import module_of_others"):
        experiment_source(made, "x")
