"""Compute settings of a session. They are not part of its identity."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rldsl.spec.base import Count, Spec
from rldsl.spec.text import matching


class Compute(Spec, frozen=True):
    """Device, compilation and CPU threads."""

    device: Annotated[str, matching(r"auto|cpu|cuda(:\d+)?", "auto, cpu, cuda or cuda:N")] = Field(
        default="auto", description="cpu, cuda, cuda:1 or auto: a GPU where there is one and it is worthwhile"
    )
    compile: Literal["auto", "on", "off"] = Field(
        default="auto", description="Compile the update; auto: if the budget is large enough to repay compilation time"
    )
    threads: Count = Field(default=1, description="CPU threads of one process")
