"""Flat parameters: where each named parameter lies in a member's row of `[M, P]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
Shape = tuple[int, ...]
Params = dict[str, Tensor]


@dataclass(frozen=True)
class Layout:
    """Names and shapes of parameters, in the order in which they fill a flat row."""

    shapes: tuple[tuple[str, Shape], ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Not a `cached_property`, whose lock cannot be traced."""
        object.__setattr__(self, "names", tuple(name for name, _ in self.shapes))
        object.__setattr__(self, "sizes", tuple(prod(shape) for _, shape in self.shapes))

    @classmethod
    def of(cls, shapes: Mapping[str, Shape]) -> Layout:
        return cls(tuple(shapes.items()))

    @classmethod
    def join(cls, parts: Mapping[str, Layout]) -> Layout:
        """Concatenate layouts; the names of each get its prefix."""
        return cls(tuple((prefix + name, shape) for prefix, part in parts.items() for name, shape in part.shapes))

    @property
    def size(self) -> int:
        """P, the number of parameters."""
        return sum(self.sizes)

    def views(self, flat: Tensor) -> Params:
        """Views `[M, *shape]` of the parameters in `flat` `[M, P]`; gradients flow back into `flat`.

        The backward pass of one `split` is one `cat`; that of a slice per name would be a tensor of P zeros for each.
        """
        parts = flat.split_with_sizes(self.sizes, 1)
        return {name: part.view(-1, *shape) for (name, shape), part in zip(self.shapes, parts, strict=True)}

    def flatten(self, params: Mapping[str, Tensor]) -> Tensor:
        """The flat parameters `[M, P]`: the inverse of `views`."""
        return torch.cat([params[name].flatten(1) for name in self.names], 1)

    def slice_of(self, prefix: str) -> slice:
        """The columns of the parameters whose names start with `prefix`; they must be contiguous."""
        found = [index for index, name in enumerate(self.names) if name.startswith(prefix)]
        if not found:
            raise KeyError(f"no parameter begins with {prefix!r}: {', '.join(self.names)}")
        if found[-1] - found[0] + 1 != len(found):
            raise ValueError(f"the parameters that begin with {prefix!r} are not contiguous")
        ends = (0, *accumulate(self.sizes))
        return slice(ends[found[0]], ends[found[-1] + 1])

    def per_parameter(self, default: Tensor, by_prefix: Mapping[str, Tensor]) -> Tensor:
        """A coefficient per parameter, `[M, P]`, such as a learning rate: `default` `[M]`, overridden by prefix."""
        columns = default.unsqueeze(1).repeat(1, self.size)
        for prefix, coefficient in by_prefix.items():
            columns[:, self.slice_of(prefix)] = coefficient.unsqueeze(1)
        return columns


def scope(values: Mapping[str, T], prefix: str) -> dict[str, T]:
    """The entries whose names start with `prefix`, which is removed: the inverse of `prefixed`."""
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def prefixed(prefix: str, values: Mapping[str, T]) -> dict[str, T]:
    """The entries with `prefix` added to their names."""
    return {prefix + name: value for name, value in values.items()}
