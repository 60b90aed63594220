"""Fuzzing of what settings are read from: experiment JSON, --set, gin, launchers and plans."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rldsl import DQN, PPO, SAC, Classic, Gym, Linear, MuJoCo, experiment, grid, log_uniform
from rldsl.plan.gin_bindings import GinBindings
from rldsl.plan.overrides import Options, Overridden, apply, parse_set
from rldsl.plan.plan import load_plan, make_plan
from rldsl.spec.experiment import Experiment
from rldsl.spec.gin_text import session_gin
from rldsl.spec.launcher import Launcher
from rldsl.spec.session import Session
from rldsl.store.plan_file import write_plan
from tests.faults import guard
from tests.faults.guard import guarded, write
from tests.faults.mutations import as_bytes, damaged, mutated, value
from tests.faults.record import cases, record

SHORT, FULL = 60, 4600
SEEDS = st.integers(0, 2**48).map(random.Random)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).frames(1e5).seeds(2).target(400)
HOPPER = experiment("hopper").env(MuJoCo("Hopper-v5", num_envs=4)).frames(1e6).seeds(2).evaluate(1e5)
WALK = experiment("walk").env(Gym("Walk-v0", kwargs={"a": [1, {"b": None}]}, wrappers=("a:B",))).frames(1e4)
EXPERIMENTS = [
    CARTPOLE.agent(PPO(lr=Linear(1e-3, 1e-5))).build(),
    CARTPOLE.agent(DQN()).search(gamma=grid(0.9, 0.99)).build(),
    HOPPER.agent(SAC()).search(lr=log_uniform(1e-4, 1e-2)).asha(trials=9, grace=1e4).build(),
    HOPPER.agent(PPO()).search(lr=log_uniform(1e-4, 1e-2), gamma=grid(0.9, 0.99)).random(trials=4).build(),
    WALK.agent(PPO()).build(),
]


def run(
    name: str,
    body: Callable[[Any], None],
    strategy: st.SearchStrategy[Any] = SEEDS,
    short: int = SHORT,
    full: int = FULL,
) -> None:
    """Runs the cases of one kind of input, and records how many there were once all of them have passed."""
    guard.counts.clear()

    @settings(
        max_examples=cases(short, full),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def every_case(case: Any) -> None:
        body(case)

    every_case()
    record(f"fuzz, {name}", cases=guard.counts.total(), refused=guard.counts["refused"], tracebacks=0)


def use(made: Experiment) -> None:
    """What commands do with an experiment before anything runs."""
    plan = make_plan([Overridden(made)])
    for _, row in zip(range(3), plan.rows(), strict=False):
        assert row.id and row.directory(row.seeds[0])
    assert Experiment.parse(json.loads(json.dumps(made.data()))) == made


def test_experiments() -> None:
    def parse(drawn: tuple[random.Random, Any]) -> None:
        stream, anything = drawn
        data = EXPERIMENTS[stream.randrange(len(EXPERIMENTS))].data()
        case = mutated(stream, data) if stream.random() < 0.9 else anything
        with guarded(case):
            use(Experiment.parse(case, root="fuzz"))

    run("experiments", parse, st.tuples(SEEDS, JSON))


PATHS = (
    "agent",
    "agent.lr",
    "agent.gamma",
    "env",
    "env.num_envs",
    "num_envs",
    "budget.frames",
    "frames",
    "seeds.count",
)
MORE_PATHS = (
    "seeds",
    "target",
    "evaluation",
    "compute",
    "search",
    "launcher",
    "env.kwargs.a",
    "agent.net.hidden",
    "name",
)
PYTHON = (
    "{1, 2}",
    "(1,)",
    "b'x'",
    "1j",
    "...",
    "{[]: 1}",
    "-" * 3000 + "1",
    "(" * 300,
    "'",
    "None",
    "0x_1",
    "{'kind': []}",
)


def setting(stream: random.Random) -> str:
    path = stream.choice(PATHS) if stream.random() < 0.8 else str(value(stream))[:100]
    choice = stream.random()
    if choice < 0.5:
        return f"{path}={json.dumps(value(stream))}"
    if choice < 0.7:
        return f"{path}={stream.choice(PYTHON)}"
    return damaged(stream, f"{path}={value(stream)}".encode("utf-8", "replace")[:3000]).decode("utf-8", "replace")


def test_overrides() -> None:
    def override(stream: random.Random) -> None:
        texts = [setting(stream) for _ in range(stream.choice((1, 1, 2)))]
        with guarded(texts):
            (made,) = apply([stream.choice(EXPERIMENTS)], [Options([parse_set(text) for text in texts])])
            use(made.experiment)

    run("overrides", override)


GIN = [
    *session_gin(Session(experiment="x", trial=EXPERIMENTS[0].base(), seed=0)).splitlines(),
    *("PPO.lr = @decay/Linear()", "decay/Linear.start = 1e-3", "decay/Linear.end = 0.0", "g = 0.9", "PPO.gamma = %g"),
    *("include 'x.gin'", "import os", "PPO.gamma = [", "Experiment.agent = @DQN()", "%x = 1", "a/b/PPO.lr = 1", "PPO:"),
]


def test_gin() -> None:
    def bind(stream: random.Random) -> None:
        text = "\n".join(stream.sample(GIN, stream.choice((1, 2, 5))))
        if stream.random() < 0.7:
            text = damaged(stream, text.encode()).decode("utf-8", "replace")
        with guarded(text):
            (made,) = apply([stream.choice(EXPERIMENTS)], [GinBindings.from_text(text, "--gin")])
            use(made.experiment)

    run("gin", bind)


def test_launchers() -> None:
    documents = [Launcher.kinds[kind]().data() for kind in ("local", "slurm", "dstack")]

    def parse(stream: random.Random) -> None:
        case = mutated(stream, stream.choice(documents))
        with guarded(case):
            made = Launcher.parse(case, root="fuzz")
            assert Launcher.parse(made.data()) == made

    run("launchers", parse)


def plan_document() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    plan = make_plan(apply(EXPERIMENTS[:2], [Options([parse_set("budget.frames=2e5")])]))
    return plan.header(), [row.data() for row in plan.rows()]


def test_plans(tmp_path: Path) -> None:
    header, trials = plan_document()
    out = io.StringIO()
    write_plan(out, header, trials)
    whole = out.getvalue().encode()

    def read(stream: random.Random) -> None:
        """Plans whose checksum fits although their content makes no sense, and damaged files."""
        data = as_bytes(stream, json.loads(whole)) if stream.random() < 0.2 else damaged(stream, whole)
        if stream.random() < 0.6:
            sealed = io.StringIO()
            changed = mutated(stream, {"header": header, "trials": trials})
            inner = changed if isinstance(changed, dict) else {}
            top, rows = inner.get("header"), inner.get("trials")
            write_plan(sealed, top if isinstance(top, dict) else {}, rows if isinstance(rows, list) else [rows])
            data = sealed.getvalue().encode("utf-8", "surrogatepass")
        path = write(tmp_path / "plan.json", data)
        with guarded(data[:2000]):
            plan = load_plan(path)
            for row in plan.rows():
                assert all(row.session(seed).id.startswith(row.id) for seed in row.seeds[:2])

    run("plans", read)
