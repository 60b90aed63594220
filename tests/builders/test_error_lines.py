"""Every mistake in an experiment file is answered with its line, the field, what was given, and what is near."""

from __future__ import annotations

import pytest

from rldsl import PPO, Classic, choice, experiment, int_uniform
from rldsl.plan.overrides import apply
from rldsl.plan.plan import make_plan
from tests.project import Project

HEAD = """\
from rldsl import MLP, PPO, Classic, Random, choice, experiment, grid, main, uniform, when, zipped

cartpole = experiment("cartpole").env(Classic("CartPole-v1"))
"""

MISTAKES = {
    "typo in a field": ("PPO(gama=0.9)", "PPO has no field 'gama'; did you mean gamma?"),
    "wrong type": ("PPO(gamma='high')", "PPO.gamma should be a valid number, got 'high'"),
    "out of range": ("PPO(gamma=1.5)", "PPO.gamma should be less than or equal to 1, got 1.5"),
    "deep typo": ("PPO(net=dict(kind='mlp', hiden=[1]))", "PPO.net has no field 'hiden'; did you mean hidden?"),
    "unknown environment": (
        "Classic('CartPol-v1')",
        "Classic.id has no 'CartPol-v1'; did you mean CartPole-v1 or Acrobot-v1?",
    ),
    "half a frame": ("cartpole.frames(4.5)", "Budget.frames should be a whole number, got 4.5"),
    "a class": ("cartpole.agent(PPO)", ".agent takes an instance: write PPO(...)"),
    "an environment's name": ("cartpole.env('CartPole-v1')", ".env takes an environment such as Classic(...)"),
    "no fit": ("cartpole.agent(PPO(minibatch=60))", "PPO.minibatch = 60 does not divide the batch of"),
    "a name": ("experiment('cart pole')", "the experiment's name should be letters, digits and . _ -"),
    "axis out of domain": (
        "cartpole.agent(PPO()).search(gamma=uniform(0.9, 1.2))",
        "agent.gamma should be less than or equal to 1, got 1.2",
    ),
    "axis of no field": ("cartpole.agent(PPO()).search(gama=grid(1))", "gama names no field; did you mean gamma?"),
    "axis of a nested field": (
        "cartpole.agent(PPO()).search(hidden=grid((8, 8)))",
        "hidden names no field; did you mean agent.net.hidden?",
    ),
    "unknown argument": ("cartpole.seeds(num=4)", ".seeds: missing a required argument: 'count'; valid: count, first"),
    "misspelled argument": (
        "cartpole.agent(PPO()).search(gamma=uniform(0.9, 1)).asha(n_trials=4)",
        ".asha: got an unexpected keyword argument 'n_trials'; did you mean trials?",
    ),
    "unknown method": ("cartpole.seed(4)", "experiments have no .seed; did you mean seeds?"),
    "axis of one agent for all": (
        "cartpole.search(agent=choice(PPO(), Random()), gamma=uniform(0.9, 1))",
        "agent.gamma is not a field of Random: give its axis for the others alone, as in when('agent', ..., gamma=...)",
    ),
    "axis of an agent that lacks it": (
        "cartpole.search(when('agent', 'random', gamma=grid(1)), agent=choice(PPO(), Random()))",
        "agent.gamma is not a field of Random",
    ),
    "condition on no axis": (
        "cartpole.agent(PPO()).search(when('agent', 'ppo', gamma=grid(1)))",
        "when('agent', ...) needs agent to be an axis with choice(...) or grid(...)",
    ),
    "condition that never holds": (
        "cartpole.search(when('agent', 'sac', tau=uniform(0, 1)), agent=choice(PPO(), Random()))",
        "agent is never 'sac'; its values: ppo, random",
    ),
    "no such optimizer": (
        "cartpole.agent(PPO()).search(gamma=uniform(0.9, 1)).nevergrad('NGOptt')",
        "Nevergrad has no optimizer 'NGOptt'; did you mean NGOpt or ",
    ),
    "an optimizer that takes one trial at a time": (
        "cartpole.agent(PPO()).search(gamma=uniform(0.9, 1)).nevergrad('Cobyla')",
        "Nevergrad's Cobyla takes one trial at a time: set parallel=1, got 4",
    ),
    "no method": (
        "cartpole.agent(PPO()).frames(1e5).search(gamma=uniform(0.9, 1)); wrong.build()",
        "the search over agent.gamma needs a method that samples its trials: .random(trials=16), .sobol(trials=16), "
        '.nevergrad("NGOpt", trials=16) or .asha(trials=16)',
    ),
    "a rung beyond the budget": (
        "cartpole.agent(PPO()).frames(1e5).search(gamma=uniform(0.9, 1)).asha(grace=1e6)",
        "asha.grace = 1,000,000 should be less than the budget of 100,000 frames",
    ),
    "zipped": ("zipped(a=grid(1), b=grid(1, 2))", "zipped takes axes of one length: a has 1, b has 2"),
    "not complete": (
        "cartpole.build()",
        "experiment 'cartpole' is not complete: it needs .agent(...) and .frames(...)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_its_line(project: Project, mistake: str) -> None:
    code, sentence = MISTAKES[mistake]
    project.write(f"{HEAD}\n\nwrong = {code}\n\nmain(cartpole.agent(Random()).frames(1e3))\n")
    ran = project.python("exp.py", "plan")
    line = 3 if mistake == "not complete" else 6
    assert ran.returncode == 2
    assert f"exp.py:{line}: {sentence}" in ran.stderr.splitlines()[-1]
    assert project.files() == {"exp.py"}


POINTS = {
    "grid": ("rollout=grid(16, 32), minibatch=grid(32, 48)", ""),
    "agents": ("agent=grid(Random(), PPO(minibatch=48))", ""),
    "agents of which the first does not fit": ("agent=grid(PPO(minibatch=48), Random())", ""),
    "random": ("rollout=choice(16, 32), minibatch=choice(32, 48)", ".random(trials=1)"),
    "nevergrad": ("rollout=choice(16, 32), minibatch=choice(32, 48), lr=uniform(0, 1)", ".nevergrad(trials=1)"),
}


@pytest.mark.parametrize("points", POINTS)
def test_values_that_do_not_fit_together_are_answered_with_the_line_of_their_search(
    project: Project, points: str
) -> None:
    axes, method = POINTS[points]
    project.write(
        f"{HEAD}\nwrong = (\n    base\n    .search({axes})\n    {method}\n    .seeds(2)\n)\n\nmain(wrong)\n".replace(
            "base", 'cartpole.env(Classic("CartPole-v1", num_envs=2)).agent(PPO(rollout=32, minibatch=32)).frames(1e4)'
        )
    )
    ran = project.python("exp.py", "search" if method else "plan")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: exp.py:7: PPO.minibatch = 48 ")
    assert len(ran.stderr) < 300 and "{" not in ran.stderr, "a sentence without a dump of settings"
    assert project.files() == {"exp.py"}


def test_choices_that_fit_somewhere_in_a_range_are_not_refused() -> None:
    small = experiment("small").env(Classic("CartPole-v1", num_envs=2)).agent(PPO(rollout=32, minibatch=32)).frames(1e4)
    for low in (32, 30):  # neither 30 nor 48 fits, but 32 does
        search = small.search(rollout=choice(16, 32), minibatch=int_uniform(low, 48)).random(trials=1)
        assert make_plan(apply([search.build()], [])).trials == 1


def test_the_line_is_that_of_the_call_in_a_chain_of_several_lines(project: Project) -> None:
    project.write("""\
        from rldsl import PPO, Classic, experiment, main

        wrong = (
            experiment("x")
            .env(Classic("CartPole-v1"))
            .agent(PPO())
            .frames(-1)
            .seeds(2)
        )
        main(wrong)
        """)
    ran = project.rldsl("plan", "exp.py")
    assert ran.returncode == 2
    assert ran.stderr == "error: exp.py:7: Budget.frames should be greater than 0, got -1\n"


def test_the_line_is_that_of_the_helper_file_that_has_the_mistake(project: Project) -> None:
    project.write("from rldsl import PPO\n\n\ndef agent():\n    return PPO(lr=-1)\n", "family.py")
    project.write("from family import agent\n\nagent()\n")
    ran = project.rldsl("plan", "exp.py")
    assert ran.stderr == "error: family.py:5: PPO.lr should be at least 0, got -1\n"
