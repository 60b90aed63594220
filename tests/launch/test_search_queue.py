"""The packs of a search as jobs of a queue. The queue is that of detached runs on this machine."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rldsl import Classic, Dstack, Local, Random, Slurm, experiment
from rldsl.launch import search_queue
from rldsl.launch.backend import QueueState, QueueUnavailable, Refused
from rldsl.launch.code import FrozenCode, freeze
from rldsl.launch.job_records import read_records
from rldsl.launch.jobs import Job
from rldsl.launch.local_backend import LocalBackend
from rldsl.launch.run import freeze_plan
from rldsl.launch.search_backend import Ended, SearchPack
from rldsl.launch.search_queue import MOST_JOBS, QueueSearchBackend
from rldsl.launch.search_run import refuse_results_elsewhere
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.spec.errors import SpecError
from tests.project import until

QUEUE = Local(parallel=2, members=1)


class Search:
    """Two sessions and a backend for them."""

    def __init__(self, root: Path, frames: int = 2000) -> None:
        (root / "exp.py").write_text("")
        self.runs = root / "runs"
        self.runs.mkdir()
        base = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(frames).log_every(100).seeds(2)
        self.made = make_plan([Overridden(base.build())])
        self.plan = freeze_plan(self.made, self.runs)
        self.code: FrozenCode = freeze(root / "exp.py", self.runs)

    @property
    def sessions(self) -> list[PlannedSession]:
        return list(Existing(self.runs).sessions(self.made))

    def packs(self, frame: int | None) -> list[SearchPack]:
        return [SearchPack([planned], frame) for planned in self.sessions]

    def backend(self) -> QueueSearchBackend:
        return QueueSearchBackend(self.runs, self.code, ["test"], QUEUE)


def wait_for(backend: QueueSearchBackend, number: int) -> list[Ended]:
    """Polls until so many sessions have ended."""
    ended: list[Ended] = []
    until(lambda: ended.extend(backend.poll()) or len(ended) >= number, 60)
    return ended


@pytest.fixture
def search(tmp_path: Path) -> Search:
    return Search(tmp_path)


def test_jobs_end_at_their_rung_and_the_next_driver_adopts_those_that_run(search: Search) -> None:
    first = search.backend()
    assert (first.workers, first.capacity()) == (2, 2)
    first.start(search.plan, search.packs(500))
    assert (sorted(first.busy), first.capacity()) == (sorted(one.id for one in search.sessions), 0)
    assert not first.interrupt(1), "jobs continue without the driver"
    second = search.backend()
    second.adopt(search.packs(500))
    assert sorted(second.busy) == sorted(first.busy)
    assert sorted(wait_for(second, 2)) == sorted(Ended(one.id) for one in search.sessions)
    assert {(one.state, one.on_disk.frame) for one in search.sessions} == {("paused", 500)}
    assert (list(second.busy), second.capacity(), len(read_records(search.runs))) == ([], 2, 2)
    third = search.backend()
    third.adopt(search.packs(1000))
    assert not third.busy, "their jobs were for an earlier rung"


def test_a_job_that_was_killed_ends_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_queue, "QUEUE_SECONDS", 0.5)
    search = Search(tmp_path, frames=50_000_000)
    backend = search.backend()
    backend.start(search.plan, search.packs(None)[:1])
    alive = tmp_path / "runs" / search.sessions[0].directory / "alive.json"
    pid = until(lambda: alive.exists() and json.loads(alive.read_text())["pid"])
    os.kill(pid, signal.SIGKILL)
    assert wait_for(backend, 1) == [Ended(search.sessions[0].id, "killed by SIGKILL (out of memory?)")]


def test_a_queue_that_does_not_answer_ends_nothing(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_queue, "QUEUE_SECONDS", 0.0)
    monkeypatch.setattr(LocalBackend, "submit", lambda self, jobs, code, folder: ["a", "b"][: len(jobs)])
    backend = search.backend()
    backend.start(search.plan, search.packs(500))

    def silent(self: LocalBackend, ids: Sequence[str]) -> dict[str, QueueState]:
        raise QueueUnavailable("squeue did not answer")

    monkeypatch.setattr(LocalBackend, "states", silent)
    assert [backend.poll() for _ in range(3)] == [[], [], []] and len(backend.busy) == 2
    with pytest.raises(QueueUnavailable, match="are not known"):
        search.backend().adopt(search.packs(500))
    monkeypatch.setattr(LocalBackend, "states", lambda self, ids: {})
    assert backend.poll() == [], "the run directory may lag behind its queue"
    assert {one.problem for one in backend.poll()} == {"its job is unknown"}


def test_refused_jobs_are_submitted_again_but_the_first_ones(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = [0]

    def submit(self: LocalBackend, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        raise Refused("sbatch refused the jobs: too many", [f"{folder.name}/{index}" for index in range(accepted[0])])

    monkeypatch.setattr(LocalBackend, "submit", submit)
    backend = search.backend()
    with pytest.raises(Refused, match="too many"):
        backend.start(search.plan, search.packs(500))
    accepted[0] = 1
    backend.start(search.plan, search.packs(500))
    assert (list(backend.busy), backend.capacity()) == ([search.sessions[0].id], 0)
    assert backend.refusal == "sbatch refused the jobs: too many"
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert backend.capacity() == 1


def test_how_many_jobs_a_search_has(search: Search) -> None:
    assert QueueSearchBackend(search.runs, search.code, [], Slurm(parallel=5)).workers == 5
    assert QueueSearchBackend(search.runs, search.code, [], Dstack()).workers == MOST_JOBS


def test_a_search_needs_results_that_come_home() -> None:
    made = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(400)
    volume = Dstack(results="/data/runs", volumes=("data:/data",))
    with pytest.raises(SpecError, match="its results must come home"):
        refuse_results_elsewhere(made.on(volume).build())
    refuse_results_elsewhere(made.on(Slurm()).build())


def test_the_driver_of_a_search_on_slurm_is_a_light_job() -> None:
    launcher = Slurm(gpus=4, gpu="a100", cpus=16, memory_gb=64, hours=2, constraint="a100", partition="gpu", parallel=8)
    driver = launcher.with_(driver_hours=72, driver_partition="long").driver()
    assert (driver.cpus, driver.gpus, driver.memory_gb, driver.hours, driver.partition) == (1, 0, None, 72, "long")
    assert launcher.driver().partition == "gpu" and Dstack().driver() == Local()
