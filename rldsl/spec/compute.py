"""How a session computes: no part of what it is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rldsl.spec.base import Count, Spec


class Compute(Spec, frozen=True):
    """Device, threads, compilation."""

    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="cpu, cuda or cuda:1")
    compile: Literal["auto", "on", "off"] = Field(
        default="auto", description="Compile the update; auto: where the budget repays the time that it takes"
    )
    threads: Count = Field(default=1, description="Threads of one process on the CPU")
