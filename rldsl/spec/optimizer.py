"""Optimizers. The learning rate is a field of the agent, because it can be scheduled."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rldsl.spec.base import Below1, Kind, NonNegative, Positive


class Optimizer(Kind, frozen=True):
    """An optimizer without its learning rate."""

    eps: Positive = Field(default=1e-5, description="Epsilon added to the denominator for numerical stability")


class Adam(Optimizer, frozen=True):
    """Adam: Kingma and Ba (2015)."""

    kind: Literal["adam"] = "adam"
    betas: tuple[Below1, Below1] = Field(default=(0.9, 0.999), description="Decay rates of the first and second moment")


class AdamW(Optimizer, frozen=True):
    """Adam with decoupled weight decay: Loshchilov and Hutter (2019)."""

    kind: Literal["adamw"] = "adamw"
    betas: tuple[Below1, Below1] = Field(default=(0.9, 0.999), description="Decay rates of the first and second moment")
    weight_decay: NonNegative = Field(default=0.01, description="Weight decay coefficient")


class RMSprop(Optimizer, frozen=True):
    """RMSprop: Tieleman and Hinton (2012)."""

    kind: Literal["rmsprop"] = "rmsprop"
    alpha: Annotated[Below1, Field(description="Decay rate of the squared gradient")] = 0.99
