"""Convolutional trunk: convolutions followed by fully connected layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from rldsl.nets.activations import ACTIVATIONS
from rldsl.nets.init import Arrays, draw_bias, draw_weight, hidden_gain
from rldsl.nets.layout import Layout, Shape, prefixed, scope
from rldsl.nets.mlp import MLPTrunk
from rldsl.nets.trunk import FeedForward, as_float
from rldsl.spec.net import Activation, Conv, Init

CHUNK = 256
"""Images per convolution."""


@dataclass(frozen=True)
class ConvLayer:
    """A convolution without padding: a weight `[channels, inputs, kernel, kernel]` and a bias `[channels]`."""

    name: str
    inputs: int
    channels: int
    kernel: int
    stride: int

    @property
    def fan_in(self) -> int:
        return self.inputs * self.kernel**2

    @property
    def shapes(self) -> dict[str, Shape]:
        weight = (self.channels, self.inputs, self.kernel, self.kernel)
        return {f"{self.name}.weight": weight, f"{self.name}.bias": (self.channels,)}

    def init(self, rng: np.random.Generator, init: Init, gain: float) -> Arrays:
        weight = draw_weight(rng, init, self.fan_in, self.channels, gain).T
        bias = draw_bias(rng, init, self.fan_in, self.channels)
        return {
            name: array.reshape(shape) for (name, shape), array in zip(self.shapes.items(), (weight, bias), strict=True)
        }


@dataclass(frozen=True)
class ConvTrunk(FeedForward):
    """Layers named "conv0", "conv1", ... on images `[C, H, W]`, `[H, W, C]` or `[H, W]`, then `dense`."""

    image: Shape
    """`[C, H, W]`, whatever the order of the observation's axes."""
    channels_last: bool
    convolutions: tuple[ConvLayer, ...]
    dense: MLPTrunk
    activation: Activation
    initial: Init

    @classmethod
    def build(cls, net: Conv, observation_shape: Shape) -> Self:
        channels_last = _has_channels_last(observation_shape)
        image = _image_shape(observation_shape, channels_last)
        convolutions = _convolutions(net, image[0])
        flattened = convolutions[-1].channels * prod(_output_side(net, side, observation_shape) for side in image[1:])
        dense = MLPTrunk(flattened, net.hidden, net.activation, net.init)
        return cls(image, channels_last, convolutions, dense, net.activation, net.init)

    @cached_property
    def layout(self) -> Layout:
        shapes = {name: shape for layer in self.convolutions for name, shape in layer.shapes.items()}
        return Layout.join({"": Layout.of(shapes), "dense.": self.dense.layout})

    @property
    def features(self) -> int:
        return self.dense.features

    def init(self, rng: np.random.Generator) -> Arrays:
        gain = hidden_gain(self.initial, self.activation)
        arrays: Arrays = {}
        for layer in self.convolutions:
            arrays |= layer.init(rng, self.initial, gain)
        return arrays | prefixed("dense.", self.dense.init(rng))

    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """Member by member: on a CPU, one grouped convolution for all members takes up to twice as long."""
        images = obs.movedim(-1, 2) if self.channels_last else obs.reshape(*obs.shape[:2], *self.image)
        maps = [self._convolve_all(params, member, images[member]) for member in range(obs.shape[0])]
        return self.dense.forward(scope(params, "dense."), torch.stack(maps))

    def _convolve_all(self, params: Mapping[str, Tensor], member: int, images: Tensor) -> Tensor:
        """In chunks: feature maps of a whole rollout are so large that malloc would map fresh memory at every call."""
        if torch.compiler.is_exporting():  # for any batch size
            return self._convolve(params, member, images)
        return torch.cat([self._convolve(params, member, chunk) for chunk in torch.split(images, CHUNK)])

    def _convolve(self, params: Mapping[str, Tensor], member: int, images: Tensor) -> Tensor:
        """One member, `[B, C, H, W] -> [B, features]`. The backward pass is faster with channels last."""
        x = as_float(images.contiguous(memory_format=torch.channels_last))
        for layer in self.convolutions:
            weight, bias = params[f"{layer.name}.weight"][member], params[f"{layer.name}.bias"][member]
            weight = weight.contiguous(memory_format=torch.channels_last)
            x = ACTIVATIONS[self.activation](conv2d(x, weight, bias, layer.stride))
        return x.flatten(1)


def _has_channels_last(shape: Shape) -> bool:
    """Whether an image is `[H, W, C]`: the last axis is smaller than the other two."""
    return len(shape) == 3 and shape[2] < min(shape[:2])


def _image_shape(shape: Shape, channels_last: bool) -> Shape:
    if len(shape) not in (2, 3):
        raise ValueError(f"Conv reads images of two or three axes, and the observations have the shape {shape}")
    if len(shape) == 2:
        return (1, *shape)
    return (shape[2], shape[0], shape[1]) if channels_last else shape


def _convolutions(net: Conv, inputs: int) -> tuple[ConvLayer, ...]:
    inputs_of = (inputs, *(channels for channels, _, _ in net.layers))
    return tuple(
        ConvLayer(f"conv{index}", inputs, *layer)
        for index, (inputs, layer) in enumerate(zip(inputs_of, net.layers, strict=False))
    )


def _output_side(net: Conv, side: int, shape: Shape) -> int:
    """Height or width of the last feature map."""
    for _, kernel, stride in net.layers:
        if side < kernel:
            raise ValueError(f"the kernels of Conv do not fit into observations of the shape {shape}")
        side = (side - kernel) // stride + 1
    return side
