"""A session record is used only if its settings, ids, seed and directory belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldsl import PPO, Classic, Random, SpecError
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Session, check_record

SESSION = Session(experiment="x", trial=Trial(agent=PPO(), env=Classic("CartPole-v1"), budget=Budget(1e4)), seed=3)
OTHER = Session(experiment="x", trial=Trial(agent=Random(), env=Classic("Acrobot-v1"), budget=Budget(1e4)), seed=3)
Record = dict[str, Any]


def change_gamma(record: Record) -> None:
    record["trial"]["agent"]["gamma"] = 0.5


def change_frames(record: Record) -> None:
    record["trial"]["budget"]["frames"] = 20_000


def change_environment(record: Record) -> None:
    record["trial"]["env"] = {"kind": "gym", "id": "CartPole-v1"}


def change_seed(record: Record) -> None:
    record["seed"] = 4


def change_ids(record: Record) -> None:
    record["trial_id"], record["id"] = OTHER.trial.id, OTHER.id


def drop_id(record: Record) -> None:
    del record["id"]


def claim_schema_1(record: Record) -> None:
    record["schema"] = 1
    change_gamma(record)


@pytest.mark.parametrize(
    "damage",
    [change_gamma, change_frames, change_environment, change_seed, change_ids, drop_id, claim_schema_1],
    ids=lambda damage: damage.__name__,
)
def test_a_changed_record_is_refused(damage: Callable[[Record], None]) -> None:
    record = SESSION.record()
    assert Session.from_record(record, SESSION.directory) == SESSION
    damage(record)
    for read in (Session.from_record, check_record):
        with pytest.raises(SpecError, match=r"^session\.json (was changed|is damaged): ") as caught:
            read(record)
        assert "\n" not in str(caught.value)


def test_what_is_not_part_of_the_identity_may_change() -> None:
    record = SESSION.record()
    record["trial"]["compute"]["threads"] = 2
    record["trial"]["budget"]["checkpoint_every"] = 50
    assert Session.from_record(record, SESSION.directory).id == SESSION.id


def test_a_record_in_the_directory_of_another_session_is_refused(tmp_path: Path) -> None:
    record = SESSION.record()
    seed = SESSION.directory.replace("seed-3", "seed-4")
    env = SESSION.directory.replace("cartpole", "acrobot")
    for directory in (OTHER.directory, seed, env, tmp_path / OTHER.directory, tmp_path / seed, f"{tmp_path}/{seed}"):
        with pytest.raises(SpecError, match=r"^session\.json does not belong into .*: it is that of cartpole-v1/ppo-"):
            Session.from_record(record, directory)
    for directory in (SESSION.directory, tmp_path / SESSION.directory, tmp_path / "a copy"):
        assert Session.from_record(record, directory) == SESSION
