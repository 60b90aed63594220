"""Submissions to a real server behind a faulty proxy, killed at random moments: no run is paid for without a record."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rldsl import Classic, Dstack, Random, experiment
from rldsl.launch.dstack import api as api_module
from rldsl.launch.dstack.api import Api
from rldsl.launch.job_records import read_records
from rldsl.launch.run import RunRequest, run_plan
from rldsl.launch.submission_lock import submission_lock
from rldsl.launch.transaction import settle_submissions
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from rldsl.store.errors import StoreError
from tests.dstack.faulty_proxy import FaultyProxy, faulty_proxy
from tests.dstack.server import DSTACK, Cluster, until
from tests.faults.record import cases, record

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        not (DSTACK / "dstack").exists(),
        reason="NO TEST OF dstack: its server is not installed; `make .venv-dstack/.installed` does that",
    ),
]

SESSIONS = 2
LIVE = ("pending", "submitted", "provisioning", "running")
WAITS = Dstack(
    gpu=("H100",), retry_on=("no-capacity",), results="/data/runs", volumes=("/tmp/none:/data",), members=1, gpus=1,
    install=False,
)  # fmt: skip
"""No machine has such a GPU: the runs wait."""
FIRST_KILLS = 1.2
"""Seconds from the start of a submission to its latest kill, at the beginning."""


class Silent:
    """An observer that has nothing to say."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def plan_of(case: int) -> Plan:
    """Sessions that no other case has."""
    made = experiment(f"case{case}").env(Classic("CartPole-v1")).agent(Random()).frames(1000 + case).seeds(SESSIONS)
    return make_plan([Overridden(made.on(WAITS).build())])


def submit(plan: Plan, runs: Path, file: Path) -> None:
    run_plan(RunRequest(plan, runs, file, ["test"], detach=True), Silent())


def submit_in_child(plan: Plan, runs: Path, file: Path) -> None:
    """What a user's command does; it ends as it may."""
    try:
        submit(plan, runs, file)
    except StoreError:
        os._exit(1)
    os._exit(0)


def attempt(plan: Plan, runs: Path, file: Path, kill_after: float) -> str:
    """A submission in a process of its own, killed after so many seconds; returns how it ended."""
    process = multiprocessing.get_context("fork").Process(target=submit_in_child, args=(plan, runs, file))
    process.start()
    process.join(kill_after)
    killed = process.is_alive()
    if killed and process.pid is not None:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return "killed" if killed else {0: "submitted"}.get(process.exitcode or 0, "error")


def live_runs(api: Api) -> set[str]:
    """The names of all runs of the project that wait or run."""
    found, last = set[str](), None
    while page := api._page(last):
        found |= {str(run["run_spec"]["run_name"]) for run in page if run["status"] in LIVE}
        last = page[-1]
        if len(page) < api_module.PAGE:
            break
    return found


def test_wherever_a_submission_breaks_every_run_has_a_record_and_every_session_one_run(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_module, "RETRY_SECONDS", (0.02, 0.05, 0.1))
    file, direct = tmp_path / "exp.py", cluster.api
    file.write_text("")
    kills, rng, latest = cases(3, 200), random.Random(1), FIRST_KILLS
    counted: Counter[str] = Counter(killed=0)
    with faulty_proxy(cluster.server.url, seed=2) as (proxy, url):
        monkeypatch.setenv("DSTACK_SERVER_URL", url)
        case = 0
        while counted["killed"] < kills:
            ended = one_case(case, tmp_path / f"runs-{case // 10}", file, proxy, direct, rng.uniform(0.0, latest))
            latest *= 1.05 if ended["killed"] else 0.9
            counted.update(ended)
            case += 1
    assert (counted["orphans"], counted["duplicates"], counted["lost"]) == (0, 0, 0), counted
    assert counted["killed"] + counted["error"] + counted["submitted"] == case
    assert kills < 100 or proxy.faults.total() > 100
    faults = {f"faults_{name.replace(' ', '_')}": count for name, count in sorted(proxy.faults.items())}
    record("submissions to dstack", submissions=case, **dict(sorted(counted.items())), **faults)


def one_case(case: int, runs: Path, file: Path, proxy: FaultyProxy, direct: Api, kill_after: float) -> Counter[str]:
    """A submission that is disturbed, the command that is given again, and what the server has then."""
    plan = plan_of(case)
    proxy.rate = 1.0
    ending = attempt(plan, runs, file, kill_after)
    proxy.rate = 0.0
    submit(plan, runs, file)
    until(lambda: not proxy.late, "requests that are still on their way")
    with submission_lock(runs):
        settle_submissions(runs)  # cancels what arrived too late
    sessions = {f"{row.id}-s{seed}" for row in plan.rows() for seed in row.seeds}
    records = read_records(runs)
    recorded = {one.job_id for one in records}
    live = live_runs(direct)
    owners = Counter(id for one in records if one.job_id in live for id in one.sessions if id in sessions)
    direct.stop([one.job_id for one in records if sessions.intersection(one.sessions)])
    return Counter(
        {
            ending: 1,
            "runs": sum(bool(sessions.intersection(one.sessions)) for one in records),
            "orphans": len({name for name in live if name.startswith(f"case{case}-")} - recorded),
            "duplicates": sum(count > 1 for count in owners.values()),
            "lost": sum(owners[id] == 0 for id in sessions),
        }
    )
