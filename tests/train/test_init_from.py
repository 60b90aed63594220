"""A session that starts from the weights of another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import rldsl
from rldsl import DQN, MLP, PPO, SAC, Agent, Classic, SpecError
from rldsl.api.runs import Run
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.cli.plan_view import show_plan
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import apply
from rldsl.plan.plan import make_plan
from rldsl.spec.init_from import InitFrom
from rldsl.store.checkpoint import load_checkpoint
from rldsl.store.errors import StoreError
from rldsl.store.initial import downloaded_path
from rldsl.store.journal import read_journal

SMALL = {"learning_starts": 100, "batch": 16, "buffer": 1000, "updates_per_frame": 0.1, "net": MLP((8,))}
CARTPOLE = rldsl.experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(64).frames(512)
AGENTS = [PPO(rollout=32, minibatch=64, net=MLP((8,)), normalize_observations=True), SAC(**SMALL), DQN(**SMALL)]


def train(builder: ExperimentBuilder, runs: Path) -> list[Run]:
    return rldsl.run(builder, runs=runs, verbose=False)


def weights(agent: Agent, lr: float, builder: ExperimentBuilder, runs: Path) -> np.ndarray:
    """The weights after a session whose learning rate is next to nothing: those that it started with."""
    (run,) = train(builder.agent(agent.with_(lr=lr)), runs)
    saved = load_checkpoint(run.directory / "checkpoints")
    assert saved is not None
    return saved.state["agent"]["update"]["flat"]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.kind)
def test_it_has_the_weights_of_the_other_session(agent: Agent, tmp_path: Path) -> None:
    (source,) = train(CARTPOLE.agent(agent), tmp_path)
    saved = load_checkpoint(source.directory / "checkpoints")
    assert saved is not None
    trained = saved.state["agent"]["update"]["flat"]
    fresh = weights(agent, 1e-12, CARTPOLE, tmp_path)
    started = weights(agent, 1e-12, CARTPOLE.init_from(source), tmp_path)
    assert np.allclose(started, trained, atol=1e-5)
    assert not np.allclose(fresh, trained, atol=1e-3)
    (run,) = train(CARTPOLE.agent(agent.with_(lr=1e-12)).init_from(source), tmp_path)
    events = {event["event"]: event for event in read_journal(run.directory / "journal.jsonl")}
    assert events["initialized"]["source"] == source.id and events["started"]["frame"] == 0


def test_it_is_part_of_the_identity_only_when_it_is_used() -> None:
    plain = CARTPOLE.agent(PPO(rollout=32)).build().base()
    assert "init_from" not in plain.data()
    started = CARTPOLE.agent(PPO(rollout=32)).init_from("0123456789ab-s0").build().base()
    assert started.id != plain.id
    assert type(started).parse(started.data()) == started


def test_a_trial_means_its_session_of_the_same_seed(tmp_path: Path) -> None:
    runs = train(CARTPOLE.agent(AGENTS[0]).seeds(2), tmp_path)
    started = train(CARTPOLE.agent(AGENTS[0]).seeds(2).init_from(runs[0].id.partition("-")[0]), tmp_path)
    assert [run.seed for run in started] == [0, 1]
    assert InitFrom("0123456789ab").session(1) == "0123456789ab-s1"


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="complete id of a session"):
        CARTPOLE.init_from("0123")
    missing = CARTPOLE.agent(AGENTS[0]).init_from("0123456789ab-s0")
    with pytest.raises(StoreError, match=r"there is no session 0123456789ab-s0 in .*: train it first"):
        train(missing, tmp_path)
    (source,) = train(CARTPOLE.agent(AGENTS[0]), tmp_path)
    other = CARTPOLE.agent(AGENTS[0].with_(net=MLP((16,)))).init_from(source)
    with pytest.raises(SpecError, match=f"the weights of {source.id} do not fit this agent and network"):
        train(other, tmp_path)


def test_the_plan_warns_of_weights_that_do_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def planned(*builders: ExperimentBuilder) -> str:
        plan = make_plan(apply([builder.build() for builder in builders], []))
        show_plan(plan, Existing(tmp_path), {})
        return " ".join(capsys.readouterr().out.split())

    first = CARTPOLE.agent(AGENTS[0])
    id = first.build().base().id
    second = first.named("second").init_from(f"{id}-s0")
    assert planned(first, second.seeds(2)).count(f"warning: second: init_from: there is no session {id}-s0 in") == 1
    assert "init_from" not in planned(first, second.after(first)), "the first one is still to train them"
    train(first, tmp_path)
    assert "init_from" not in planned(second)


def test_an_agent_of_the_hub_is_read_from_its_copy(tmp_path: Path) -> None:
    """The download itself is tested with the Hub."""
    (source,) = train(CARTPOLE.agent(AGENTS[0]), tmp_path / "elsewhere")
    init = InitFrom("hf://me/cartpole", checkpoint="best")
    shutil.copytree(source.directory, downloaded_path(tmp_path, init))
    (run,) = train(CARTPOLE.agent(AGENTS[0]).init_from("hf://me/cartpole"), tmp_path)
    assert run.spec.trial.init_from == init and run.state == "done"
