"""Minibatches in memory that is allocated once: numpy arrays to sample into, and tensors on the same memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor


class Minibatches:
    """The minibatches of one vector step, one dict of tensors for each call of the update.

    `arrays` are `[steps, M, B, ...]`. A call that makes `steps_per_call` gradient steps takes as many minibatches,
    `[steps_per_call, M, B, ...]`; a call that makes one takes `[M, B, ...]`.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        steps_per_call: int,
        device: torch.device,
        array_only: Collection[str] = (),
    ) -> None:
        self.arrays = arrays
        self._steps_per_call, self._device = steps_per_call, device
        self._tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if name not in array_only}
        self._cpu_batches = self._by_call(self._tensors)

    def tensors(self) -> list[dict[str, Tensor]]:
        """The current contents of `arrays`, for each call; without those that are `array_only`."""
        if self._device.type == "cpu":
            return self._cpu_batches
        return self._by_call({name: tensor.to(self._device) for name, tensor in self._tensors.items()})

    def _by_call(self, tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        if self._steps_per_call > 1:
            tensors = {name: torch.unflatten(tensor, 0, (-1, self._steps_per_call)) for name, tensor in tensors.items()}
        calls = zip(*(tensor.unbind(0) for tensor in tensors.values()), strict=True)
        return [dict(zip(tensors, call, strict=True)) for call in calls]
