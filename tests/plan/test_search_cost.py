"""The cost of a search, as its plan shows it."""

from __future__ import annotations

import random

import pytest

from rldsl import PPO, MuJoCo, experiment, log_uniform, uniform
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.overrides import Options, Overridden, apply, parse_set
from rldsl.plan.plan import load_plan, make_plan
from rldsl.plan.search_cost import search_cost
from rldsl.search.history import History
from rldsl.search.schedule import Finished, Promote, StartNew, decide, schedule_of
from rldsl.spec.errors import SpecError
from tests.project import Project

BASE = experiment("hopper").env(MuJoCo("Hopper-v5")).agent(PPO()).frames(1e6).seeds(3)
AXES = BASE.search(gamma=uniform(0.9, 0.99), lr=log_uniform(1e-4, 1e-2))


def trained(builder: ExperimentBuilder, seed: int) -> int:
    """The frames of a search in which one trial runs at a time and all values are random."""
    schedule, stream = schedule_of(builder.build()), random.Random(seed)
    events: list[dict[str, object]] = []
    frames = 0
    while not isinstance(decision := decide(History.of(events), schedule), Finished):
        assert isinstance(decision, Promote | StartNew)
        rung = decision.rung if isinstance(decision, Promote) else 0
        if isinstance(decision, StartNew):
            events.append({"event": "suggested", "trial": decision.trial, "point": {}, "id": "-"})
        else:
            frames -= len(schedule.seeds[rung - 1]) * schedule.frames[rung - 1]
        frames += len(schedule.seeds[rung]) * schedule.frames[rung]
        facts = {"trial": decision.trial, "rung": rung}
        events.append({"event": "started", **facts, "seeds": list(schedule.seeds[rung])})
        values = {str(one): stream.random() for one in schedule.seeds[rung]}
        events.append({"event": "finished", **facts, "values": values, "seconds": 1.0})
    return frames


@pytest.mark.parametrize(
    "builder",
    [AXES.asha(16), AXES.asha(40, eta=2), AXES.asha(27, seeds=(1, 2, 4)), AXES.asha(30, stopping=True), AXES.asha(2)],
    ids=["16", "eta 2", "more seeds", "stopping", "two"],
)
def test_the_expected_frames_are_those_of_searches_with_random_values(builder: ExperimentBuilder) -> None:
    cost = search_cost(builder.build())
    mean = sum(trained(builder, seed) for seed in range(30)) / 30
    assert cost.expected == pytest.approx(mean, rel=0.15)
    assert cost.expected < cost.total


def test_methods_without_early_stopping_cost_what_all_trials_cost() -> None:
    for builder in (AXES.random(5), AXES.sobol(5), AXES.nevergrad(trials=5)):
        cost = search_cost(builder.build())
        assert cost.total == cost.expected == 5 * 3 * 1_000_000
        assert cost.axes == ("agent.gamma", "agent.lr")
    assert search_cost(BASE.build()) is None


def test_a_plan_file_keeps_the_cost(tmp_path: object) -> None:
    plan = make_plan([Overridden(AXES.asha(6, seeds=(1, 2)).build())])
    plan.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json").parts == plan.parts
    assert plan.parts[0].seeds == 2


def test_the_settings_of_a_search_can_be_overridden() -> None:
    texts = ("search.method.trials=4", "search.method.eta=2", "search.objective=median", "search.max_failures=2")
    made = apply([AXES.asha(16).build()], [Options([parse_set(text) for text in texts])])[0]
    method = made.experiment.search.method
    assert (method.trials, method.eta) == (4, 2)
    assert (made.experiment.search.objective, made.experiment.search.max_failures) == ("median", 2)
    assert {one.path for one in made.overrides} == {text.partition("=")[0] for text in texts}
    with pytest.raises(SpecError, match="Nevergrad has no optimizer 'NGOp'; did you mean NGOpt"):
        apply([AXES.nevergrad().build()], [Options([parse_set("search.method.optimizer=NGOp")])])


def test_plan_says_what_a_search_will_do(project: Project) -> None:
    project.write("""\
        from rldsl import PPO, Classic, choice, experiment, log_uniform, main, uniform

        ppo = experiment("cartpole").env(Classic("CartPole-v1")).agent(PPO()).frames(1e5).seeds(2)
        axes = ppo.search(gamma=uniform(0.9, 0.99), lr=log_uniform(1e-4, 1e-2), lam=uniform(0.9, 1))
        asha, few = axes.asha(9, seeds=(1, 2)).named("asha"), axes.nevergrad(trials=6).named("few")
        main(asha, few, ppo.search(clip=choice(0.1, 0.2)).random(8).named("repeats"))
        """)
    ran = project.rldsl("plan", "exp.py")
    assert ran.returncode == 0, ran.stderr
    lines = [line.rstrip() for line in ran.stdout.splitlines()]
    asha = lines.index("asha  9 trials by asha x 2 seeds x 100k frames")
    shown = [line for line in lines[asha + 1 : asha + 9] if line.startswith("  ") and "gradient" not in line]
    assert shown[0] == "  3 dimensions: gamma, lr, lam"
    assert shown[1].startswith("  1.8M frames if every trial trains to the end, about ")
    assert shown[2] == "  rung 0: 9 trials to 11.11k frames, 1 seed each"
    assert "trials to 33.33k frames, 2 seeds each" in shown[3]
    assert "  each trial is chosen from the results so far: 6 trials cannot be listed yet" in lines
    assert not any("--all" in line for line in lines), "all that can be listed are listed"
    assert "17 trials, 34 sessions: 34 new; at most 3.4M frames to go" in lines, "repeated draws count once"
    assert "  few trials: 3-4 per dimension are advised, 9 to 12 here" in lines
    assert "repeats: 6 of 8 trials repeat earlier ones" in lines
    assert any("at most " in line for line in lines)
    assert not any(line.startswith("few ") and "-s" in line for line in lines)
