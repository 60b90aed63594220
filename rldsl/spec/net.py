"""Networks, as shapes: what `nets/` builds."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rldsl.spec.base import Count, Flag, Kind, Sizes

Activation = Literal["tanh", "relu", "elu", "selu", "silu", "gelu"]
Init = Literal["orthogonal", "xavier", "he", "torch"]


class Net(Kind, frozen=True):
    """A network from observations to features; the heads are the agent's."""

    activation: Activation = Field(default="tanh", description="Non-linearity after each layer")
    init: Init = Field(default="orthogonal", description="Initial weights")


class MLP(Net, frozen=True):
    """Fully connected layers."""

    kind: Literal["mlp"] = "mlp"
    implementation: ClassVar[str] = "rldsl.nets.mlp:MLPTrunk"
    hidden: Sizes = Field(kw_only=False, default=(64, 64), description="Units of each hidden layer")
    layer_norm: Flag = Field(default=False, description="Layer normalisation before each non-linearity")


class Conv(Net, frozen=True):
    """Convolutions, then fully connected layers; the defaults are the network of Mnih et al. (2015)."""

    kind: Literal["conv"] = "conv"
    implementation: ClassVar[str] = "rldsl.nets.conv:ConvTrunk"
    activation: Activation = Field(default="relu", description="Non-linearity after each layer")
    layers: tuple[tuple[Count, Count, Count], ...] = Field(
        default=((32, 8, 4), (64, 4, 2), (64, 3, 1)), min_length=1, description="(channels, kernel, stride) of each"
    )
    hidden: Sizes = Field(default=(512,), description="Units of each fully connected layer after them")


class Recurrent(Net, frozen=True):
    """Fully connected layers, then a recurrent one whose state is cut where an episode ends."""

    kind: Literal["recurrent"] = "recurrent"
    implementation: ClassVar[str] = "rldsl.nets.recurrent:RecurrentTrunk"
    hidden: Sizes = Field(kw_only=False, default=(64,), description="Units of each layer before the recurrent one")
    cell: Literal["gru", "lstm"] = Field(default="gru", description="The recurrent cell")
    size: Count = Field(default=64, description="Units of the recurrent state")
