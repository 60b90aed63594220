"""Agents that interrupt, fail or stop in the debugger while they train."""

from __future__ import annotations

import signal
from typing import ClassVar, Literal

from rldsl import Agent
from rldsl.agents.base import World
from rldsl.agents.random import RandomAgent


class Trouble(Agent, frozen=True):
    """Acts at random; something happens at frame `at`."""

    kind: Literal["trouble"] = "trouble"
    implementation: ClassVar[str] = f"{__name__}:TroubleAgent"
    what: Literal["ctrl-c", "error", "breakpoint", "none"] = "none"
    at: int = 100


class TroubleAgent(RandomAgent):
    armed: ClassVar[bool] = True

    def iterate(self, world: World) -> None:
        spec = self.context.specs[0]
        assert isinstance(spec, Trouble)
        if world.frame == spec.at and self.armed:
            self.cause(spec.what)
        super().iterate(world)

    def cause(self, what: str) -> None:
        if what == "ctrl-c":
            signal.raise_signal(signal.SIGINT)
        elif what == "error":
            raise ZeroDivisionError("in the agent")
        elif what == "breakpoint":
            breakpoint()
