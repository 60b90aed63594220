"""What the journal records about how a session computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from rldsl import Agent
from rldsl.agents.base import AgentContext, World
from rldsl.agents.random import RandomAgent
from tests.project import events
from tests.train.packs import CARTPOLE, session, train


class Compiling(Agent, frozen=True):
    """An agent that compiles its update in the third iteration."""

    kind: Literal["compiling"] = "compiling"
    implementation: ClassVar[str] = f"{__name__}:CompilingAgent"


class CompilingAgent(RandomAgent):
    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.iterations = 0

    def iterate(self, world: World) -> None:
        super().iterate(world)
        self.iterations += 1

    def notes(self) -> dict[str, Any]:
        return {"device": "cpu", "compiled": self.iterations >= 3}


def test_notes_of_the_agent_are_recorded_at_the_start_and_when_they_change(tmp_path: Path) -> None:
    pack = train(tmp_path, *(session(Compiling(), CARTPOLE, seed, frames=40) for seed in range(2)))
    for directory in pack.directories:
        recorded = [one for one in events(directory.path) if one["event"] in ("started", "compute")]
        assert [one["event"] for one in recorded] == ["started", "compute"]
        assert recorded[0]["compiled"] is False and recorded[0]["device"] == "cpu"
        assert {**recorded[1], "time": 0} == {"time": 0, "event": "compute", "frame": 6, "compiled": True}
        assert directory.state() == "done"
