"""Network architectures, implemented in `rldsl.nets`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rldsl.spec.base import Count, Flag, Kind, Sizes

Activation = Literal["tanh", "relu", "elu", "selu", "silu", "gelu"]
Init = Literal["orthogonal", "xavier", "he", "torch"]


class Net(Kind, frozen=True):
    """A network from observations to features. Agents add the output heads."""

    activation: Activation = Field(default="tanh", description="Activation function")
    init: Init = Field(default="orthogonal", description="Weight initialization")


class MLP(Net, frozen=True):
    """A multilayer perceptron."""

    kind: Literal["mlp"] = "mlp"
    implementation: ClassVar[str] = "rldsl.nets.mlp:MLPTrunk"
    hidden: Sizes = Field(kw_only=False, default=(64, 64), description="Units of each hidden layer")
    layer_norm: Flag = Field(default=False, description="Layer normalization before each activation")


class Conv(Net, frozen=True):
    """Convolutions, then fully connected layers; the defaults are the network of Mnih et al. (2015)."""

    kind: Literal["conv"] = "conv"
    implementation: ClassVar[str] = "rldsl.nets.conv:ConvTrunk"
    activation: Activation = Field(default="relu", description="Activation function")
    layers: tuple[tuple[Count, Count, Count], ...] = Field(
        default=((32, 8, 4), (64, 4, 2), (64, 3, 1)),
        min_length=1,
        description="(channels, kernel size, stride) of each convolution",
    )
    hidden: Sizes = Field(default=(512,), description="Units of each fully connected layer after the convolutions")


class Recurrent(Net, frozen=True):
    """Fully connected layers followed by a recurrent layer, whose state is reset when an episode ends."""

    kind: Literal["recurrent"] = "recurrent"
    implementation: ClassVar[str] = "rldsl.nets.recurrent:RecurrentTrunk"
    hidden: Sizes = Field(
        kw_only=False, default=(64,), description="Units of each fully connected layer before the recurrent one"
    )
    cell: Literal["gru", "lstm"] = Field(default="gru", description="Recurrent cell")
    size: Count = Field(default=64, description="Units of the recurrent layer")
