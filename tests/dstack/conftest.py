"""A dstack server and a Hub on this machine; nothing outside of it is asked."""

from __future__ import annotations

import os

os.environ["HF_HUB_DISABLE_XET"] = "1"  # read once, when the client is imported: a loopback has no such storage

from collections.abc import Iterator

import pytest

from tests.dstack.server import Cluster, running_cluster
from tests.hub.loopback import TOKEN, Hub, running_hub


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running_hub() as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", made.url)
        patch.setenv("HF_TOKEN", TOKEN)
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf-home")))
        yield made


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A server with six machines, for all tests that do not need their own."""
    with running_cluster(tmp_path_factory.mktemp("dstack"), 6) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment().items():
            patch.setenv(name, value)
        yield made
