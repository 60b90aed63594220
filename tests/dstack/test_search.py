"""A search on the real server: a process of this machine drives it, and results come home through the Hub."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rldsl.search.history import History
from rldsl.store.search_dir import SearchDir, search_dirs
from tests.dstack.server import DSTACK, Cluster, running_cluster, until
from tests.hub.loopback import TOKEN, Hub
from tests.project import Project, events, work

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (DSTACK / "dstack").exists(),
        reason="NO TEST OF dstack: its server is not installed; `make .venv-dstack/.installed` does that",
    ),
]

EXPERIMENT = """
    from rldsl import PPO, Classic, experiment, log_uniform, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(PPO(rollout=32, epochs=2))
    rates = cartpole.frames(2048).log_every(256).compute(compile="off").search(lr=log_uniform(1e-4, 1e-2))

    if __name__ == "__main__":
        main(rates.asha(2, grace=1024, eta=2).named("cartpole/rates"))
"""
LAUNCHER = """
    from rldsl import Dstack

    launcher = Dstack(
        results="me/search", secrets=("hf_token",), install=False, members=1,
        env={{"HF_ENDPOINT": "{url}", "HF_HUB_DISABLE_XET": "1"}},
    )
"""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("dstack"), 2) as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


def values(project: Project) -> list[object]:
    (directory,) = search_dirs(project.runs)
    return [(trial.point, trial.values) for trial in History.of(directory.events()).trials]


def test_a_detached_search_promotes_a_trial_from_the_hub(
    cluster: Cluster, hub: Hub, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster.api.project("secrets/create_or_update", {"name": "hf_token", "value": TOKEN})
    project.write(EXPERIMENT)
    project.write(LAUNCHER.format(url=hub.url), "launchers/cloud.py")
    said = project.python("exp.py", "search", "--on", "cloud", "--detach")
    assert said.returncode == 0 and "drives the search" in said.stdout, said.stdout + said.stderr
    (directory,) = search_dirs(project.runs)
    until(lambda: directory.running, "the driver", 60)
    until(lambda: not SearchDir(directory.path).running, "the end of the search", 500)
    said = project.python("exp.py", "status")
    log = (directory.path / "log.txt").read_text()
    assert "search cartpole/rates: 2 of 2 trials: 1 done, 1 paused; finished" in said.stdout, said.stdout + log
    whole = Project(tmp_path_factory.mktemp("whole"))
    whole.write(EXPERIMENT)
    whole.write("from rldsl import Local\n\nlauncher = Local(members=1)\n", "launchers/here.py")
    assert whole.python("exp.py", "search", "--on", "here").returncode == 0
    assert values(project) == values(whole)
    for ours, expected in zip(project.sessions, whole.sessions, strict=True):
        assert work(ours) == work(expected)
    told = sorted([one["event"] for one in events(path)].count("submitted") for path in project.sessions)
    assert told == [1, 2], "a run for each trial and rung"
