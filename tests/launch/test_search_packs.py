"""How the sessions of a search are divided into packs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rldsl import MLP, PPO, Classic, experiment
from rldsl.launch.search_packs import Work, WorkItem
from rldsl.plan.existing import planned_session
from rldsl.spec.experiment import Experiment, Trial
from rldsl.store.plan_parts import Row

BASE = experiment("x").env(Classic("CartPole-v1")).frames(1e5)


def built(gamma: float = 0.9, width: int = 64) -> Experiment:
    return BASE.agent(PPO(gamma=gamma, net=MLP((width,)))).build()


def item(seed: int, frame: int = 0, until: int | None = 100, width: int = 64, alone: bool = False) -> WorkItem:
    trial: Trial = built(0.9 + seed / 1000, width).base()
    planned = planned_session(Row("x", trial, trial.id, (seed,), {}, None, ()), seed, Path("none"))
    return WorkItem(replace(planned, on_disk=replace(planned.on_disk, frame=frame)), until, alone)


def sizes(work: Work) -> list[int]:
    return [len(pack.sessions) for pack in work.packs()]


def test_sessions_are_split_evenly_over_free_processes() -> None:
    work = Work(2, None, ())
    work.add(item(seed) for seed in range(5))
    assert sizes(work) == [3, 2]
    assert [pack.until for pack in work.packs()] == [100, 100]


def test_members_start_at_one_frame_and_end_at_one_rung() -> None:
    work = Work(9, 8, ())
    work.add([item(0), item(1), item(2, frame=50), item(3, until=None), item(4, width=128), item(5, alone=True)])
    assert sizes(work) == [1] * 6, "there is a process for each"
    assert work.processes == 5, "only two of them could share one"


def test_what_runs_is_not_started_again() -> None:
    first, second = item(0), item(1)
    work = Work(2, None, {first.planned.id})
    work.add([first, second, second])
    assert [[one.id for one in pack.sessions] for pack in work.packs()] == [[second.planned.id]]


def test_room_is_a_free_process_or_a_pack_that_is_not_full() -> None:
    work = Work(1, 2, ())
    assert work.has_room_for([item(0)]) and work.has_room_for_new()
    work.add([item(0)])
    assert work.has_room_for([item(1)]) and work.has_room_for_new()
    assert not work.has_room_for([item(1, frame=50)])
    work.add([item(1)])
    assert not work.has_room_for([item(2)]) and not work.has_room_for_new()
    assert work.has_room_for([item(1)]), "it is part of the work already"


def test_packs_without_a_process_wait_their_turn() -> None:
    work = Work(1, None, ())
    work.add([item(0, frame=50), item(1)])
    assert [pack.sessions[0].on_disk.frame for pack in work.packs()] == [50]


@pytest.mark.parametrize(
    ("left", "workers", "free", "most"),
    [(20, 2, 2, 10), (10, 2, 1, 5), (16, 2, 2, 16), (6, 2, 2, 6), (20, None, 2, float("inf")), (7, 1, 1, 7)],
)
def test_new_trials_are_divided_over_all_rounds(left: int, workers: int | None, free: int, most: float) -> None:
    work = Work(free, None, ())
    work.limit_new(left, workers, built())
    assert work.most_new == most
