"""One thread, as in training, and members with generators of their own."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

Generators = Callable[..., list[np.random.Generator]]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def generators() -> Generators:
    return lambda *seeds: [np.random.default_rng(seed) for seed in seeds]
