"""The monitor's queue against a real one."""

from __future__ import annotations

from rldsl.monitor.control import resume_request, stop, stop_request
from rldsl.monitor.queue import Queue, slurm, with_sessions
from rldsl.monitor.session_index import SessionIndex
from tests.slurm.lab import Lab


def test_jobs_are_joined_with_the_sessions_that_they_run(lab: Lab) -> None:
    lab.launcher(members=2, parallel=1)
    lab.train("--only", "slow", "--seeds", 4, "--set", "agent.nap=0.05", "--detach")
    lab.until_begun(0, points=1)
    answer = Queue({"SLURM": slurm}).poll()
    assert not answer.notes
    seen = {one.path: one for one in SessionIndex(lab.runs).refresh().updated}
    rows = {row.id: row for row in with_sessions(answer.rows, seen) if row.id in lab.jobs}
    assert {row.state for row in rows.values()} == {"running", "pending"}
    for record in lab.records:
        row = rows[record["job_id"]]
        assert sorted(row.sessions) == sorted(record["sessions"]), "a task of an array has its own sessions alone"
        assert row.name == "cart-slow"
        assert row.reason.startswith("on node") if row.state == "running" else row.reason
    backends = {one.status.session: one.backend for one in seen.values()}
    assert backends == {id: f"slurm {record['job_id']}" for record in lab.records for id in record["sessions"]}


def test_stopping_cancels_the_job_and_a_waiting_session_is_not_resumed_here(lab: Lab) -> None:
    lab.launcher(members=2, parallel=1)
    lab.train("--only", "slow", "--seeds", 4, "--set", "agent.nap=0.05", "--detach")
    lab.until_begun(0, points=1)
    jobs = {row.id for row in Queue({"SLURM": slurm}).poll().rows}
    seen = {one.path: one for one in SessionIndex(lab.runs).refresh().updated}
    waiting = [one for one in seen.values() if one.status.state != "running"]
    assert len(waiting) == 2 and resume_request(waiting, 1, jobs) is None
    running = next(one for one in seen.values() if one.status.state == "running")
    request = stop_request([running], seen, lab.runs, jobs)
    assert request is not None
    assert "jobs are cancelled" in request.details and "In the same jobs, and stopped with them" in request.details
    assert stop(request, lab.runs).errors == []
    lab.until_gone(running.job)
