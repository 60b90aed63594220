"""Minibatches: tensors on the memory that sampling writes into, split by call of the update."""

import numpy as np
import torch

from rldsl.memory.minibatches import Minibatches

CPU = torch.device("cpu")


def arrays(count: int) -> dict[str, np.ndarray]:
    return {"reward": np.zeros((count, 2, 5), np.float32), "index": np.zeros((count, 2, 5), np.int64)}


def test_tensors_show_what_was_written_last() -> None:
    minibatches = Minibatches(arrays(3), steps_per_call=1, device=CPU)
    for value in (1.0, 2.0):
        minibatches.arrays["reward"][:] = value + np.arange(3)[:, None, None]
        batches = minibatches.tensors()
        assert [batch["reward"].shape for batch in batches] == [(2, 5)] * 3
        assert [float(batch["reward"][0, 0]) for batch in batches] == [value, value + 1, value + 2]


def test_a_call_of_several_steps_takes_as_many_minibatches() -> None:
    minibatches = Minibatches(arrays(6), steps_per_call=3, device=CPU)
    minibatches.arrays["reward"][:] = np.arange(6)[:, None, None]
    first, second = minibatches.tensors()
    assert first["reward"].shape == (3, 2, 5)
    assert second["reward"][:, 0, 0].tolist() == [3.0, 4.0, 5.0]


def test_arrays_can_be_kept_from_the_update() -> None:
    minibatches = Minibatches(arrays(2), steps_per_call=1, device=CPU, array_only=("index",))
    assert [list(batch) for batch in minibatches.tensors()] == [["reward"], ["reward"]]
