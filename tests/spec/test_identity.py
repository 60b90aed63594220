"""Same id, same work. The ids below are written out: if one moves, every earlier result is orphaned."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from rldsl import MLP, PPO, Atari, Classic, Gym, Linear, MuJoCo, Random
from rldsl.spec.base import NoHash, Spec, digest
from rldsl.spec.budget import Budget, Evaluation, Target
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Session

HOPPER = PPO(gamma=0.991, lr=Linear(3e-4), entropy=0.005, net=MLP((256, 256)))

GOLDEN = {
    "random": Trial(agent=Random(), env=Classic("CartPole-v1", num_envs=4), budget=Budget(2e5, log_every=500)),
    "ppo": Trial(agent=PPO(), env=Classic("CartPole-v1"), budget=Budget(1e5)),
    "hopper": Trial(agent=HOPPER, env=MuJoCo("Hopper-v5", num_envs=16), budget=Budget(4e6), evaluation=Evaluation(1e5)),
    "atari": Trial(agent=Random(), env=Atari("Pong"), budget=Budget(1e7)),
    "gym": Trial(agent=Random(), env=Gym("pkg:Mine-v0", kwargs={"size": 3}), budget=Budget(1e3)),
}
IDS = {
    "random": "3c4edd81075b",
    "ppo": "82aab2cf489f",
    "hopper": "07a64dec68d6",
    "atari": "b01933505b35",
    "gym": "32e858d7f40e",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_ids_stay_what_they_are(name: str) -> None:
    assert GOLDEN[name].id == IDS[name]


def test_however_a_number_is_written_the_id_is_the_same() -> None:
    env = Classic("CartPole-v1")
    assert (
        Trial(agent=Random(), env=env, budget=Budget(4e6)).id
        == Trial(agent=Random(), env=env, budget=Budget(4_000_000)).id
    )
    assert digest(PPO(lr=1)) == digest(PPO(lr=1.0))
    assert digest(PPO()) == digest(PPO(gamma=0.99)), "a default that is spelt out is the same setting"


def test_what_is_marked_no_hash_is_no_part_of_the_identity() -> None:
    class Painted(Spec, frozen=True):
        """A spec with a colour that does not matter."""

        size: int = Field(description="Matters")
        colour: Annotated[str, NoHash] = Field(description="Does not")

    Spec.models.pop("Painted")
    assert digest(Painted(size=1, colour="red")) == digest(Painted(size=1, colour="blue"))
    assert digest(Painted(size=1, colour="red")) != digest(Painted(size=2, colour="red"))


def test_a_session_is_its_trial_and_its_seed() -> None:
    trial = GOLDEN["random"]
    session = Session(experiment="cartpole/random", trial=trial, seed=3)
    assert session.id == f"{trial.id}-s3"
    assert session.directory == f"cartpole-v1/random-{trial.id}/seed-3"
    renamed = Session(experiment="another/name", trial=trial, seed=3, target=Target(5))
    assert renamed.id == session.id


def test_the_record_of_a_session_gives_the_session_back() -> None:
    session = Session(experiment="cartpole/random", trial=GOLDEN["hopper"], seed=3, target=Target(5))
    record = session.record()
    assert Session.from_record(record) == session
    assert (record["id"], record["trial_id"], record["frames"]) == (session.id, session.trial.id, 4_000_000)
