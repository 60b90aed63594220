"""Compute settings of a session. They are not part of its identity."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rldsl.spec.base import Count, Spec


class Compute(Spec, frozen=True):
    """Device, compilation and CPU threads."""

    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="cpu, cuda or cuda:1")
    compile: Literal["auto", "on", "off"] = Field(
        default="auto", description="Compile the update; auto: if the budget is large enough to repay compilation time"
    )
    threads: Count = Field(default=1, description="CPU threads of one process")
