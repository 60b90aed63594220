"""A plan against what was submitted before, and what is written down of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rldsl import Classic, Random, Slurm, experiment
from rldsl.launch.backend import QueueUnavailable, Refused
from rldsl.launch.fill import packs_of
from rldsl.launch.job_records import JobRecord, newest_records, read_records, record_stop, write_records
from rldsl.launch.queued import QueuedJobs
from rldsl.launch.queues import Queues, with_job
from rldsl.launch.slurm import SlurmBackend
from rldsl.launch.submit import Submitter, reconcile
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from tests.project import events

LAUNCHER = Slurm(members=1)


def plan(frames: int = 1000) -> Plan:
    made = experiment("x").named("x").env(Classic("CartPole-v1")).agent(Random()).frames(frames).seeds(3).build()
    return make_plan([Overridden(made)])


def planned_sessions(one: Plan, runs: Path) -> list[PlannedSession]:
    return [planned for row in one.rows() for planned in Existing(runs).planned(row)]


def record(job: str, *sessions: str, name: str = "x") -> JobRecord:
    return JobRecord("slurm", job, sessions, "s", LAUNCHER.data(), experiment=name)


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A queue that says what a test writes; there are no accounts."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "squeue"


def write(command: Path, text: str) -> None:
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o755)


def test_what_is_live_stays_what_is_not_is_missing_and_what_is_not_planned_is_stale(
    tmp_path: Path, squeue: Path
) -> None:
    one = plan()
    first, second, third = planned_sessions(one, tmp_path)
    records = [
        record("1_0", first.id),
        record("1_1", second.id),
        record("2", "gone-s0"),
        record("3", "far-s0", name="y"),
        record("4", first.id.replace("-s0", "-s9")),
    ]
    write_records(tmp_path, records)
    lines = ["1_0|PENDING|Priority|", "1_1|FAILED|NonZeroExitCode|n", *(f"{id}|RUNNING|None|n" for id in (2, 3, 4))]
    write(squeue, "".join(f"echo '{line}'\n" for line in lines))
    found = reconcile(one, [first, second, third], Queues(tmp_path))
    assert found.live[first.id].state.reason == "Priority"
    assert found.missing == [second, third] and list(found.live) == [first.id], "counts have planned ones alone"
    assert [one.job_id for one in found.stale] == ["2", "4"], "of this plan's experiments alone"


def test_a_queue_that_does_not_answer_is_never_taken_for_an_empty_one(tmp_path: Path, squeue: Path) -> None:
    one = plan()
    first, *_ = planned_sessions(one, tmp_path)
    write_records(tmp_path, [record("1", first.id)])
    write(squeue, "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(
        QueueUnavailable, match="controller: the jobs in the queue are not known, nothing was submitted"
    ):
        reconcile(one, [first], Queues(tmp_path))


def test_a_queue_that_does_not_answer_is_said_so_in_the_status(tmp_path: Path, squeue: Path) -> None:
    first, *_ = planned_sessions(plan(), tmp_path)
    write_records(tmp_path, [record("1", first.id)])
    write(squeue, "exit 1")
    job = Queues(tmp_path).jobs([first.id])[first.id]
    assert with_job(first.on_disk, job).reason == "slurm job 1: unknown: the queue did not answer"
    write(squeue, "")
    job = Queues(tmp_path).jobs([first.id])[first.id]
    assert "SLURM keeps no accounts here" in (with_job(first.on_disk, job).reason or "")


def test_a_silent_queue_does_not_end_what_is_followed(tmp_path: Path, squeue: Path) -> None:
    first, *_ = planned_sessions(plan(), tmp_path)
    write_records(tmp_path, [record("1", first.id)])
    write(squeue, "exit 1")
    jobs = QueuedJobs([first], tmp_path)
    assert [jobs._poll_queue() for _ in range(3)] == [[], [], []] and jobs.active


def test_a_job_that_was_stopped_is_neither_live_nor_missing_before_it_has_ended(tmp_path: Path, squeue: Path) -> None:
    one = plan()
    first, second, third = planned_sessions(one, tmp_path)
    records = [record(f"1_{index}", planned.id) for index, planned in enumerate((first, second, third))]
    write_records(tmp_path, records)
    record_stop(tmp_path, records[:2])
    lines = ["1_0|RUNNING|None|n", "1_1|CANCELLED|None|n", "1_2|COMPLETING|None|n"]
    write(squeue, "".join(f"echo '{line}'\n" for line in lines))
    found = reconcile(one, [first, second, third], Queues(tmp_path))
    assert (found.missing, list(found.live), list(found.ending)) == ([second], [], [first.id, third.id])


def test_the_newest_record_of_a_session_counts_and_broken_lines_do_not(tmp_path: Path) -> None:
    write_records(tmp_path, [record("1", "a-s0", "a-s1"), record("2", "a-s1")])
    with (tmp_path / ".jobs" / "tickets.jsonl").open("a") as file:
        file.write('nonsense\n{"backend": "slurm"}\n{"half": ')
    found = newest_records(read_records(tmp_path))
    assert {id: one.job_id for id, one in found.items()} == {"a-s0": "1", "a-s1": "2"}
    assert found["a-s1"].spec() == LAUNCHER


def test_of_jobs_that_are_refused_those_before_them_are_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(self: SlurmBackend, jobs: list[object], code: Path, folder: Path) -> list[str]:
        raise Refused("sbatch refused the jobs: too many", ["7_0", "7_1"])

    monkeypatch.setattr(SlurmBackend, "submit", submit)
    (tmp_path / "exp.py").write_text("")
    one, runs = plan(), tmp_path / "runs"
    one.save(tmp_path / "plan.json")
    submitter = Submitter(tmp_path / "plan.json", runs, tmp_path / "exp.py", [sys.executable], LAUNCHER)
    with pytest.raises(Refused, match="too many"):
        submitter.submit(planned_sessions(one, runs))
    assert [one.job_id for one in read_records(runs)] == ["7_0", "7_1"]
    told = [[event["event"] for event in events(path)] for path in sorted(runs.glob("*/*/seed-*"))]
    assert told == [["created", "submitted"], ["created", "submitted"], ["created"]]
    assert read_records(runs)[0].folder(runs).is_dir()


def test_packs_are_as_large_as_the_launcher_lets_them_be(tmp_path: Path) -> None:
    three = planned_sessions(plan(), tmp_path)
    assert [len(pack) for pack in packs_of(three, LAUNCHER)] == [1, 1, 1]
    assert [len(pack) for pack in packs_of(three, Slurm())] == [3]
    assert [len(pack) for pack in packs_of(three, Slurm(members=2))] == [2, 1]


def test_a_whole_array_stands_for_its_jobs(tmp_path: Path) -> None:
    write_records(
        tmp_path, [record("5_0", "a-s0"), record("5_1", "b-s0"), record("6_0", "c-s0"), record("6_1", "d-s0")]
    )
    backend = SlurmBackend(LAUNCHER, tmp_path)
    assert backend._whole_arrays(["5_0", "5_1", "6_1", "6_1"]) == ("5", "6_1")
    assert backend._whole_arrays([]) == ()
