"""The cluster, once for all tests, and a project whose sessions take as long as a test needs them to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import Project
from tests.slurm.cluster import Cluster, possible
from tests.slurm.lab import Lab


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real one. Without root and without SLURM there is none, and that is said aloud."""
    if not possible():
        warnings.warn("SLURM IS NOT TESTED: it needs root and Debian's packages", stacklevel=1)
        pytest.skip("SLURM IS NOT TESTED: neither root nor an installed SLURM is there")
    made = Cluster()
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture
def lab(cluster: Cluster, project: Project) -> Iterator[Lab]:
    """A project on the cluster; its jobs end with the test."""
    made = Lab(cluster, project)
    yield made
    made.cancel_all()


@pytest.fixture(scope="session")
def long(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A session that outlives its time limit of a minute: begun with the first test, looked at by the last."""
    made = Lab(cluster, Project(Path(tmp_path_factory.mktemp("long"))))
    made.launcher(hours=1 / 60, warning_seconds=20, constraint="steady")
    made.train("--only", "slow", "--seeds", 1, "--frames", 1500, "--set", "agent.nap=0.05", "--detach")
    return made
