"""Launchers: places to run, and what of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rldsl.spec.base import Count, Kind


class Launcher(Kind, frozen=True):
    """A place to run."""


class Local(Launcher, frozen=True):
    """This machine: a process for each session, several at a time."""

    kind: Literal["local"] = "local"
    parallel: Count | None = Field(default=None, description="Sessions at a time; none: one for each core")
