"""Which sessions may train together, and how they are spread over processes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic.fields import FieldInfo

from rldsl import (
    A2C,
    MLP,
    PPO,
    SIL,
    Agent,
    Classic,
    Conv,
    Linear,
    Net,
    Optimizer,
    Random,
    Recurrent,
    Reinforce,
    RMSprop,
    Sarsa,
    experiment,
)
from rldsl.plan.existing import PlannedSession
from rldsl.plan.overrides import Overridden
from rldsl.plan.packs import make_packs, most_members, pack_key
from rldsl.plan.plan import Row, make_plan
from rldsl.spec.base import PerMember
from rldsl.spec.budget import Budget, Evaluation
from rldsl.spec.compute import Compute
from rldsl.spec.experiment import Trial
from rldsl.spec.schedule import Schedule
from rldsl.store.session_state import SessionState

AGENTS: tuple[Agent, ...] = (Reinforce(), A2C(), PPO(), Sarsa())
CARTPOLE = Classic("CartPole-v1", num_envs=4)
INSTEAD_OF_NONE: dict[str, Any] = {
    "critic_lr": 0.1,
    "critic_net": MLP((8,)),
    "n_step": 3,
    "target_kl": 0.1,
    "sil": SIL(),
}


def trial(agent: Agent, **changes: Any) -> Trial:
    return Trial(**{"agent": agent, "env": CARTPOLE, "budget": Budget(1_000_000)} | changes)


def fields(per_member: bool) -> list[tuple[Agent, str, FieldInfo]]:
    return [
        pytest.param(agent, name, id=f"{agent.kind}.{name}")
        for agent in AGENTS
        for name, field in type(agent).model_fields.items()
        if name != "kind" and (PerMember in field.metadata) == per_member
    ]


def another(name: str, value: Any) -> Any:
    """A valid value of the field that is not this one."""
    if value is None:
        return INSTEAD_OF_NONE[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value
    if isinstance(value, float):
        return value / 2 if value else 0.5
    if isinstance(value, Schedule):
        return 0.25
    if isinstance(value, Net):
        return MLP((8,))
    if isinstance(value, Optimizer):
        return value.with_(eps=1e-3)
    return {"epsilon": "boltzmann"}[value]


@pytest.mark.parametrize(("agent", "name"), fields(per_member=True))
def test_members_may_differ_in_what_is_marked(agent: Agent, name: str) -> None:
    if getattr(agent, name) is None:
        agent = agent.with_(**{name: 0.3})
    other = agent.with_(**{name: another(name, getattr(agent, name))})
    assert other != agent
    assert pack_key(trial(other)) == pack_key(trial(agent))


@pytest.mark.parametrize(("agent", "name"), fields(per_member=False))
def test_members_are_alike_in_all_else(agent: Agent, name: str) -> None:
    other = agent.with_(**{name: another(name, getattr(agent, name))})
    assert pack_key(trial(other)) != pack_key(trial(agent))


@pytest.mark.parametrize("name", ["max_grad_norm", "critic_lr"])
def test_what_one_has_and_another_has_not_keeps_them_apart(name: str) -> None:
    assert pack_key(trial(PPO(**{name: None}))) != pack_key(trial(PPO(**{name: 0.5})))


def test_a_number_and_a_schedule_go_together() -> None:
    assert pack_key(trial(PPO(lr=1e-3))) == pack_key(trial(PPO(lr=Linear(1e-2))))


@pytest.mark.parametrize(
    "change",
    [
        {"env": CARTPOLE.with_(num_envs=8)},
        {"env": Classic("Acrobot-v1", num_envs=4)},
        {"budget": Budget(2_000_000)},
        {"budget": Budget(1_000_000, log_every=7)},
        {"evaluation": Evaluation(10_000)},
        {"compute": Compute(device="cuda")},
        {"compute": Compute(compile="off")},
        {"compute": Compute(threads=2)},
        {"agent": A2C()},
    ],
    ids=str,
)
def test_trials_that_differ_otherwise_are_kept_apart(change: dict[str, Any]) -> None:
    assert pack_key(trial(**{"agent": PPO()} | change)) != pack_key(trial(PPO()))


def test_what_does_not_change_the_work_does_not_keep_apart() -> None:
    assert pack_key(trial(PPO(), budget=Budget(1_000_000, checkpoint_every=5))) == pack_key(trial(PPO()))


class Alone(Random, frozen=True):
    """An agent whose implementation trains one member at a time."""

    kind: Any = "packs-alone"
    packs = False


@pytest.mark.parametrize(
    ("agent", "compute", "most"),
    [
        (PPO(), Compute(), 8),
        (PPO(net=MLP((128,))), Compute(), 8),
        (PPO(net=MLP((129,))), Compute(), 2),
        (PPO(net=MLP((256, 64))), Compute(), 2),
        (PPO(net=MLP((512,))), Compute(), 1),
        (PPO(critic_net=MLP((512,))), Compute(), 1),
        (PPO(net=Recurrent((64,), size=512)), Compute(), 1),
        (PPO(net=Conv()), Compute(), 1),
        (PPO(net=Conv()), Compute(device="cuda"), 32),
        (Random(), Compute(), 8),
        (Alone(), Compute(), 1),
        (Alone(), Compute(device="cuda"), 1),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_how_many_members_pay(agent: Agent, compute: Compute, most: int) -> None:
    assert most_members(trial(agent, compute=compute)) == most


def planned_sessions(seeds: int, agent: Agent | None = None, frames: list[int] | None = None) -> list[PlannedSession]:
    made = experiment("x").env(CARTPOLE).agent(agent or PPO()).frames(1e6).seeds(seeds).build()
    row: Row = next(make_plan([Overridden(made)]).rows())
    at = frames or [0] * seeds
    return [PlannedSession(row, seed, row.directory(seed), SessionState(frame=at[seed])) for seed in row.seeds]


@pytest.mark.parametrize(
    ("seeds", "processes", "sizes"),
    [
        (4, 1, [4]),
        (4, 2, [2, 2]),
        (4, 8, [1, 1, 1, 1]),
        (5, 2, [3, 2]),
        (8, 1, [8]),
        (9, 1, [5, 4]),
        (20, 2, [7, 7, 6]),
        (1, 0, [1]),
    ],
)
def test_packs_are_as_few_as_may_be_but_keep_every_process_busy(seeds: int, processes: int, sizes: list[int]) -> None:
    packs = make_packs(planned_sessions(seeds), processes)
    assert [len(pack) for pack in packs] == sizes
    assert sorted(one.seed for pack in packs for one in pack) == list(range(seeds))


def test_sessions_at_different_frames_are_not_packed() -> None:
    packs = make_packs(planned_sessions(4, frames=[0, 500, 0, 500]), processes=1)
    assert sorted([one.seed for one in pack] for pack in packs) == [[0, 2], [1, 3]]


def test_only_what_may_differ_is_packed_across_trials() -> None:
    rates, other = (
        planned_sessions(2, PPO(lr=1e-3)) + planned_sessions(2, PPO(lr=1e-2)),
        planned_sessions(2, PPO(epochs=3)),
    )
    packs = make_packs(rates + other, processes=1)
    assert sorted(len(pack) for pack in packs) == [2, 4]
    assert len({pack_key(one.row.trial) for one in packs[0]}) == 1


def test_nothing_makes_no_packs() -> None:
    assert make_packs([], processes=2) == []


def test_an_optimizer_of_another_kind_keeps_apart() -> None:
    assert pack_key(trial(PPO(optimizer=RMSprop()))) != pack_key(trial(PPO()))
