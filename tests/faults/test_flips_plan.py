"""Every bit flip and every truncation of a plan file is one sentence, for commands and for the worker."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rldsl import PPO, Classic, Random, experiment, grid
from rldsl.plan.overrides import Options, apply, parse_set
from rldsl.plan.plan import load_plan, make_plan
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError
from rldsl.train.__main__ import planned_sessions
from tests.faults.record import cases, every, record

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).frames(1e5).seeds(2).target(400)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    declared = [CARTPOLE.agent(Random()).build(), CARTPOLE.agent(PPO()).search(gamma=grid(0.9, 0.99)).build()]
    made = make_plan(apply(declared, [Options([parse_set("budget.frames=2e5")])]))
    made.save(tmp_path / "plan.json")
    return tmp_path / "plan.json"


def refused(path: Path, data: bytes, id: str) -> None:
    path.write_bytes(data)
    for read in (lambda: list(load_plan(path).rows()), lambda: planned_sessions(path, [id])):
        with pytest.raises((SpecError, StoreError)) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_bit_flips(plan: Path) -> None:
    whole, id = plan.read_bytes(), f"{next(load_plan(plan).rows()).id}-s0"
    stream, flips = random.Random(0), cases(300, 3000)
    for _ in range(flips):
        bit = stream.randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        refused(plan, bytes(damaged), id)
    record("plan, bit flips", cases=flips, accepted=0, bytes=len(whole))


def test_truncations(plan: Path) -> None:
    whole, id = plan.read_bytes(), f"{next(load_plan(plan).rows()).id}-s0"
    lengths = range(0, len(whole), every(23))
    for length in lengths:
        refused(plan, whole[:length], id)
    record("plan, truncations", cases=len(lengths), accepted=0)
