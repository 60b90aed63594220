"""Overrides change what they name, say what they changed, and never hit nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl import MLP, PPO, Classic, Conv, Linear, Random, SpecError, experiment, grid
from rldsl.plan.gin_bindings import GinBindings
from rldsl.plan.overrides import Options, Overridden, apply, parse_set, select
from rldsl.spec.budget import Evaluation, Target
from rldsl.spec.gin_text import to_gin

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).frames(1e5).seeds(2)
RANDOM = CARTPOLE.agent(Random()).build()
PPO_ = CARTPOLE.agent(PPO(rollout=64, critic_net=MLP((8,)))).build()
GRID = CARTPOLE.agent(PPO(rollout=64)).search(gamma=grid(0.9, 0.99)).build()


def options(*texts: str) -> Options:
    return Options([parse_set(text) for text in texts])


def gin(text: str) -> GinBindings:
    return GinBindings.from_text(text, "--gin")


def overridden(*sources: Options | GinBindings, base: object = PPO_) -> Overridden:
    return apply([base], sources)[0]


def at(made: Overridden, path: str) -> object:
    value = made.experiment
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("agent.gamma=0.5", "agent.gamma", 0.5),
        ("gamma=0.5", "agent.gamma", 0.5),
        (" gamma = 0.5 ", "agent.gamma", 0.5),
        ("frames=2e5", "budget.frames", 200_000),
        ("seeds.count=7", "seeds.count", 7),
        ("num_envs=8", "env.num_envs", 8),
        ("env.id=Acrobot-v1", "env.id", "Acrobot-v1"),
        ('env.id="Acrobot-v1"', "env.id", "Acrobot-v1"),
        ("agent.normalize_rewards=true", "agent.normalize_rewards", True),
        ("agent.normalize_rewards=True", "agent.normalize_rewards", True),
        ("agent.max_grad_norm=null", "agent.max_grad_norm", None),
        ("agent.max_grad_norm=None", "agent.max_grad_norm", None),
        ("agent.net.hidden=[32, 32]", "agent.net.hidden", (32, 32)),
        ("agent.net.hidden=(32,)", "agent.net.hidden", (32,)),
        ("agent.net=conv", "agent.net", Conv()),
        ("agent.lr={'kind': 'linear', 'start': 1e-3}", "agent.lr", Linear(1e-3)),
        ('agent.lr={"kind": "linear", "start": 1e-3}', "agent.lr", Linear(1e-3)),
        ('evaluation={"every": 1e6}', "evaluation", Evaluation(1_000_000)),
        ("target={'score': 3}", "target", Target(3)),
        ("agent=random", "agent", Random()),
    ],
)
def test_an_option_sets_the_field_that_it_names(text: str, path: str, value: object) -> None:
    made = overridden(options(text))
    assert at(made, path) == value


def test_what_was_changed_is_told_with_what_it_was_and_who_said_so() -> None:
    (change,) = overridden(options("gamma=0.5")).overrides
    assert change.data() == {"path": "agent.gamma", "was": 0.99, "now": 0.5, "source": "--set gamma=0.5"}


def test_what_stays_as_it_was_is_no_override() -> None:
    assert overridden(options("gamma=0.99")).overrides == ()


def test_a_part_and_a_field_of_it_are_set_together_in_any_order() -> None:
    for texts in (["agent.net=conv", "agent.net.hidden=[9]"], ["agent.net.hidden=[9]", "agent.net=conv"]):
        assert at(overridden(options(*texts)), "agent.net") == Conv(hidden=(9,))


def test_options_that_fit_only_together_are_taken_together() -> None:
    made = overridden(options("rollout=60", "minibatch=30"))
    assert (at(made, "agent.rollout"), at(made, "agent.minibatch")) == (60, 30)


def test_an_option_changes_every_experiment_that_has_the_field() -> None:
    random, ppo = apply([RANDOM, PPO_], [options("gamma=0.5")])
    assert random.overrides == ()
    assert ppo.experiment.agent.gamma == 0.5


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["gama=1"], "--set gama=1: gama names no field; did you mean gamma?"),
        (["agent.gama=1"], "--set agent.gama=1: agent.gama names no field; did you mean agent.gamma"),
        (["agent.net.hiden=[1]"], "agent.net.hiden names no field; did you mean agent.net.hidden"),
        (["hidden=[32,32]"], "--set hidden=[32,32]: hidden names no field; did you mean agent.net.hidden or"),
        (["name=x"], "--set name=x: name names no field"),
        (["agent.kind=random"], "agent.kind names no field"),
        (["agent.lr.start=1"], "agent.lr.start names no field"),
        (["gamma=2"], "--set gamma=2: cartpole/ppo.agent.gamma should be less than or equal to 1, got 2"),
        (["gamma=high"], "--set gamma=high: cartpole/ppo.agent.gamma should be a valid number, got 'high'"),
        (["frames=4.5"], "cartpole/random.budget.frames should be a whole number, got 4.5"),
        (["agent.normalize_rewards=yes"], "should be a valid boolean, got 'yes'"),
        (["minibatch=60"], "--set minibatch=60: PPO.minibatch = 60 does not divide the batch"),
        (["env=CartPole-v1"], "cartpole/random.env names no known environment"),
        (["env.id=CartPol-v1"], "cartpole/random.env.id has no 'CartPol-v1'; did you mean CartPole-v1"),
        (["lam=0.5", "gamma=2"], "--set gamma=2: cartpole/ppo.agent.gamma should be"),
        (["gamma=0.5", "gamma=0.6"], "--set gamma=0.5 and --set gamma=0.6 disagree about agent.gamma"),
        (["gamma=0.5", "agent.gamma=0.6"], "--set gamma=0.5 and --set agent.gamma=0.6 disagree about agent.gamma"),
    ],
)
def test_an_option_that_is_wrong_is_one_sentence(texts: list[str], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        apply([RANDOM, PPO_], [options(*texts)])
    assert sentence in str(caught.value)


def test_several_gin_options_apply_together() -> None:
    made = overridden(gin("PPO.gamma = 0.5"), gin("PPO.lam = 0.6"), gin("Classic.num_envs = 2"))
    assert [at(made, path) for path in ("agent.gamma", "agent.lam", "env.num_envs")] == [0.5, 0.6, 2]
    with pytest.raises(SpecError, match=r"disagree about agent\.gamma"):
        overridden(gin("PPO.gamma = 0.5"), gin("PPO.gamma = 0.6"))


def test_saying_the_same_twice_is_no_disagreement() -> None:
    assert at(overridden(options("gamma=0.5", "agent.gamma=0.5"), gin("PPO.gamma = 0.5")), "agent.gamma") == 0.5


@pytest.mark.parametrize("text", ["gamma", "=3", "", " =3"])
def test_an_option_without_path_or_value_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--set takes path=value, such as"):
        parse_set(text)


@pytest.mark.parametrize("text", ["gamma=0.5", "agent=random"])
def test_what_an_axis_moves_cannot_be_overridden(text: str) -> None:
    with pytest.raises(SpecError, match=r"agent\.gamma is an axis of cartpole/ppo-grid; leave that out with --only"):
        apply([PPO_, GRID], [options(text)])


def test_beside_an_axis_an_override_is_fine() -> None:
    assert overridden(options("lam=0.5"), base=GRID).experiment.agent.lam == 0.5


def test_a_binding_sets_the_field_of_its_model() -> None:
    assert at(overridden(gin("PPO.gamma = 0.995")), "agent.gamma") == 0.995
    assert at(overridden(gin("Classic.id = 'Acrobot-v1'\nBudget.frames = 4e6")), "budget.frames") == 4_000_000


def test_a_binding_without_a_scope_changes_every_such_model() -> None:
    made = overridden(gin("MLP.hidden = (3, 3)"))
    assert at(made, "agent.net.hidden") == at(made, "agent.critic_net.hidden") == (3, 3)


def test_macros_references_and_scopes() -> None:
    text = """
        decay = 5e-4
        PPO.lr = @fast/Linear()
        PPO.clip = @slow/Linear()
        fast/Linear.start = %decay
        slow/Linear.start = 0.2
        slow/Linear.end = 0.1
    """
    made = overridden(gin(text))
    assert at(made, "agent.lr") == Linear(5e-4)
    assert at(made, "agent.clip") == Linear(0.2, 0.1)
    assert [(one.path, one.now["start"]) for one in made.overrides] == [("agent.lr", 5e-4), ("agent.clip", 0.2)]


def test_a_later_binding_replaces_an_earlier_one_of_the_same_text() -> None:
    assert at(overridden(gin("PPO.gamma = 0.5\nPPO.gamma = 0.6")), "agent.gamma") == 0.6


def test_a_file_may_include_another(tmp_path: Path) -> None:
    (tmp_path / "common.gin").write_text("horizon = 0.75\n")
    (tmp_path / "mine.gin").write_text("include 'common.gin'\n\nPPO.gamma = %horizon  # long\n")
    made = overridden(GinBindings.from_file(tmp_path / "mine.gin"))
    assert at(made, "agent.gamma") == 0.75
    assert made.overrides[0].source.endswith("mine.gin:3")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("PPO.gama = 0.5", "--gin: PPO has no field 'gama'; did you mean gamma?"),
        ("PPPO.gamma = 0.5", "--gin: there is no PPPO; did you mean PPO?"),
        ("PPO.gamma = 2", "--gin: cartpole/ppo.agent.gamma should be less than or equal to 1, got 2"),
        ("PPO.gamma = 'x'", "--gin: cartpole/ppo.agent.gamma should be a valid number, got 'x'"),
        ("PPO.kind = 'random'", "--gin: PPO has no field 'kind'"),
        ("Atari.sticky = 0.1", "--gin: Atari.sticky is used by nothing in the plan"),
        ("horizon = 0.5", "--gin: horizon is used by nothing in the plan"),
        ("PPO.lr = @a/Linear()\na/Linear.start = 1\nb/Linear.start = 2", "--gin: b/Linear.start is used by nothing"),
        ("PPO.gamma = %horizon", "--gin: %horizon names nothing; no macro is defined"),
        ("horizon = 0.5\nPPO.gamma = %horizn", "--gin: %horizn names nothing; did you mean horizon?"),
        ("PPO.lr = @Liner()", "--gin: @Liner names nothing; did you mean Linear"),
        ("PPO.lr = @Linear()", "--gin: cartpole/ppo.agent.lr.start is missing"),
        ("import os", "--gin: import os is refused: a settings file runs no code"),
        ("from os import path", "is refused: a settings file runs no code"),
        ("include 'nowhere.gin'", "--gin: there is no file nowhere.gin to include"),
        ("PPO.gamma 0.5", "--gin: not valid gin:"),
        ("PPO.gamma = __import__('os')", "--gin: not valid gin:"),
        ("PPO.gamma = ", "--gin: not valid gin:"),
        ("a = %b\nb = %a\nPPO.gamma = %a", "--gin: "),
    ],
)
def test_a_binding_that_is_wrong_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        overridden(gin(text))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_line_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.gin"
    path.write_text("PPO.lam = 0.5\n\nPPO.gama = 0.5\n")
    with pytest.raises(SpecError, match=r"mine\.gin:3: PPO has no field 'gama'; did you mean gamma\?"):
        GinBindings.from_file(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"--gin-file .*nope\.gin: cannot read .*nope\.gin: No such file"):
        GinBindings.from_file(tmp_path / "nope.gin")


def test_a_binding_and_an_option_that_disagree_are_refused() -> None:
    with pytest.raises(SpecError, match=r"--set gamma=0\.5 and --gin disagree about agent\.gamma"):
        overridden(options("gamma=0.5"), gin("PPO.gamma = 0.6"))


def test_one_binding_leaves_no_trace_in_the_next() -> None:
    overridden(gin("PPO.gamma = 0.5"))
    made = overridden(gin("PPO.lam = 0.5"))
    assert at(made, "agent.gamma") == 0.99


def test_the_gin_of_an_experiment_names_each_field_once() -> None:
    lines = [line.partition(" = ")[0] for line in to_gin(PPO_).splitlines() if " = " in line]
    assert len(lines) == len(set(lines))
    assert {"PPO.gamma", "agent_net/MLP.hidden", "agent_critic_net/MLP.hidden", "Classic.id"} <= set(lines)


def test_only_finds_an_experiment_by_its_name_or_a_part_of_it() -> None:
    everything = [RANDOM, PPO_, GRID]
    assert select(everything, []) == everything
    assert select(everything, ["cartpole/ppo"]) == select(everything, ["ppo"]) == [PPO_]
    assert select(everything, ["ppo", "random"]) == [RANDOM, PPO_]
    assert select(everything, ["cartpole"]) == everything
    with pytest.raises(SpecError, match="--only ppoo: there is no such experiment; valid: cartpole/random, "):
        select(everything, ["ppoo"])
