"""Optimizers; the learning rate is the agent's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rldsl.spec.base import Below1, Kind, NonNegative, Positive


class Optimizer(Kind, frozen=True):
    """How a gradient becomes a step."""

    eps: Positive = Field(default=1e-5, description="Added to the denominator")


class Adam(Optimizer, frozen=True):
    """Kingma and Ba (2015)."""

    kind: Literal["adam"] = "adam"
    betas: tuple[Below1, Below1] = Field(default=(0.9, 0.999), description="Decay of the two moments")


class AdamW(Optimizer, frozen=True):
    """Adam with decoupled weight decay: Loshchilov and Hutter (2019)."""

    kind: Literal["adamw"] = "adamw"
    betas: tuple[Below1, Below1] = Field(default=(0.9, 0.999), description="Decay of the two moments")
    weight_decay: NonNegative = Field(default=0.01, description="Decay of the weights, times the learning rate")


class RMSprop(Optimizer, frozen=True):
    """Tieleman and Hinton (2012)."""

    kind: Literal["rmsprop"] = "rmsprop"
    alpha: Annotated[Below1, Field(description="Decay of the squared gradient")] = 0.99
