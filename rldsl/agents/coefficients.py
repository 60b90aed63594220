"""Hyperparameters that may differ between members and follow schedules: gamma, learning rate, clip range, ..."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rldsl.maths.schedules import value_at
from rldsl.spec.agent import Agent


class Coefficients:
    """Fields of the members' specs as tensors `[M]`. Tensors are cached until a schedule changes their values."""

    def __init__(self, specs: Sequence[Agent], frames: int, device: torch.device) -> None:
        self.specs, self.frames, self.device = specs, frames, device
        self._cache: dict[str, tuple[tuple[float, ...], Tensor]] = {}
        self._constant: dict[str, Tensor] = {}

    def at(self, frame: int, *names: str) -> dict[str, Tensor]:
        """The values of several fields at a frame."""
        return {name: self.tensor(name, frame) for name in names}

    def tensor(self, name: str, frame: int, default: float | None = None) -> Tensor:
        """The value of one field at a frame, `[M]`; `default` replaces None."""
        if (constant := self._constant.get(name)) is not None:
            return constant
        values = self.floats(name, frame, default)
        if name not in self._cache or self._cache[name][0] != values:
            self._cache[name] = (values, torch.tensor(values, dtype=torch.float32, device=self.device))
        if all(isinstance(getattr(spec, name), float | None) for spec in self.specs):
            self._constant[name] = self._cache[name][1]
        return self._cache[name][1]

    def floats(self, name: str, frame: int, default: float | None = None) -> tuple[float, ...]:
        """The value of one field at a frame as a float per member."""
        return tuple(self._value(spec, name, frame, default) for spec in self.specs)

    def _value(self, spec: Agent, name: str, frame: int, default: float | None) -> float:
        value = getattr(spec, name)
        if value is None and default is not None:
            return default
        return value_at(value, frame, self.frames)
