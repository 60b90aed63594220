"""The real server with stand-ins for machines: everything is submitted at once, and then each is looked at.

Most of the time is the server's own waiting: some twenty seconds for a run to start, and as many for it to end.
"""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load
from submitit import AutoExecutor
from submitit.core.utils import FailedJobError

from rldsl import Dstack
from rldsl.launch.backend import QueueState, Refused
from rldsl.launch.dstack.api import Api, DstackError, Server
from rldsl.launch.dstack.backend import DstackBackend, state_of
from rldsl.launch.dstack.executor import DstackExecutor, DstackJob
from rldsl.launch.jobs import LEAST, Resources
from rldsl.monitor import queue
from rldsl.store.checkpoint import load_checkpoint
from tests.docs import test_commands
from tests.docs.documents import parse_blocks
from tests.dstack.server import DSTACK, FLEET, PROJECT, Cluster, until
from tests.dstack.server import TOKEN as SERVER_TOKEN
from tests.hub.loopback import TOKEN, Hub, Repo
from tests.project import ROOT, Project, events, work

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (DSTACK / "dstack").exists(),
        reason="NO TEST OF dstack: its server is not installed; `make .venv-dstack/.installed` does that",
    ),
]

RESULTS, EMPTY = "me/results", "empty"
EXPERIMENT = """
    from rldsl import PPO, Classic, experiment, main

    env = Classic("CartPole-v1", num_envs=4)
    agent = PPO(rollout=32, minibatch=64, epochs=4)
    ppo = experiment("cartpole").env(env).agent(agent).frames(4096).log_every(512).checkpoint_every(512)

    if __name__ == "__main__":
        main(ppo)
"""
LAUNCHER = """
    from rldsl import Dstack

    launcher = Dstack(
        results="me/results", secrets=("hf_token",), install=False, push_minutes=0.01, setup=("true # first",),
        env={{"HF_ENDPOINT": "{url}", "HF_HUB_DISABLE_XET": "1", "TRICK": "$(touch /tmp/never) `id` ; '\\" #"}},
    )
"""
PLAIN = Dstack(install=False, retry_on=(), gpu=("L4", "A10G"), gpu_memory_gb=20, max_price=1)


@dataclass
class Story:
    """What was submitted, and who killed what."""

    cluster: Cluster
    project: Project
    jobs: dict[str, DstackJob]
    homeless: str
    """A run of a project that has no fleet."""
    run: str
    killed: list[int]

    def job(self, name: str) -> DstackJob:
        """A job that has ended."""
        job = self.jobs[name]
        until(lambda: job.done(force_check=True), f"the end of {name}", 150)
        return job

    def state(self, name: str) -> QueueState:
        return DstackBackend(Dstack(), Path()).states([self.jobs[name].job_id])[self.jobs[name].job_id]


@pytest.fixture(scope="module")
def story(cluster: Cluster, hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Submits all, and lets them run while the tests look at one after the other."""
    cluster.api.project("secrets/create_or_update", {"name": "hf_token", "value": TOKEN})
    folder = tmp_path_factory.mktemp("jobs")

    def greet(name: str) -> str:
        print(f"grüße, {name}")
        print("end of a line\r")
        return f"done for {name}"

    jobs = {
        "success": submit(folder, PLAIN, greet, "you"),
        "failure": submit(folder, PLAIN, operator.truediv, 1, 0),
        "raises": submit(folder, PLAIN.with_(retry_on=Dstack().retry_on), operator.truediv, 1, 0),
        "stopped": submit(folder, PLAIN, time.sleep, 600),
        "too long": submit(folder, PLAIN.with_(hours=5 / 3600), time.sleep, 600),
        "nowhere": submit(folder, PLAIN.with_(fleets=("nowhere",)), operator.add, 1, 2),
    }
    project = Project(tmp_path_factory.mktemp("project"))
    project.write(EXPERIMENT)
    project.write(LAUNCHER.format(url=hub.url), "launchers/cloud.py")
    killed: list[int] = []
    hub.on_commit = lambda repo: killed or killed.extend(kill_after_checkpoint(repo, cluster))
    said = project.python("exp.py", "train", "--on", "cloud", "--detach")
    assert said.returncode == 0, said.stdout + said.stderr
    return Story(
        cluster, project, jobs, homeless(cluster, folder), said.stdout.split("to dstack: ")[1].split()[0], killed
    )


@pytest.fixture(scope="module")
def uninterrupted(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The same code, left alone."""
    project = Project(tmp_path_factory.mktemp("uninterrupted"))
    project.write(EXPERIMENT)
    (code,) = (story.project.runs / ".code").glob("*/lib")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(code))
        said = project.python("exp.py")
    assert said.returncode == 0, said.stdout + said.stderr
    return project


def homeless(cluster: Cluster, folder: Path) -> str:
    cluster.api.call("/api/projects/create", {"project_name": EMPTY})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSTACK_PROJECT", EMPTY)
        return submit(folder, PLAIN, operator.add, 1, 2).job_id


def submit(folder: Path, profile: Dstack, function: Any, *arguments: Any) -> DstackJob:
    executor = AutoExecutor(folder, cluster="dstack")
    executor.update_parameters(name="Test / of it", dstack_profile=profile)
    return executor.submit(function, *arguments)


def kill_after_checkpoint(repo: Repo, cluster: Cluster) -> list[int]:
    """When the first checkpoint arrives, the job that sent it dies before it hears of it, with its training."""
    if not any("/checkpoints/0" in path for path in repo.files):
        return []
    folders = [path.parents[2] for path in cluster.folder.glob("*/job-*/.rldsl/jobs/cartpole-*.pkl")]
    pids = [int((folder / "pid").read_text()) for folder in folders]
    for pid in pids:
        os.killpg(pid, signal.SIGKILL)
    return pids


def test_a_checked_place_has_a_server_a_fleet_secrets_and_results(story: Story) -> None:
    launcher = Dstack(results=RESULTS, secrets=("hf_token",))
    assert {check.name: check.ok for check in DstackBackend(launcher, Path()).check()} == {
        "server": True,
        "fleet": True,
        "secrets": True,
        "results": True,
    }
    checks = DstackBackend(Dstack(fleets=("other",), secrets=("absent",)), Path()).check()
    words = {check.name: check.words for check in checks if not check.ok}
    assert "there is no fleet other" in words["fleet"]
    assert "no secret absent" in words["secrets"]
    assert "results='user/name'" in words["results"]


def test_the_monitor_shows_the_runs(story: Story) -> None:
    rows = {row.id: row for row in queue.dstack()}
    assert rows[story.jobs["stopped"].job_id].state in ("submitted", "provisioning", "running")
    assert "dstack" in queue.available_sources()


def test_offers_have_a_machine_and_a_price(story: Story) -> None:
    until(lambda: any("$0.00/h" in line for line in DstackBackend(PLAIN, Path()).offers(LEAST)), "machines at rest")
    lines = [one for one in DstackBackend(PLAIN, Path()).offers(Resources(1, 1)) if "$" in one]
    assert all("$0.00/h" in line and "L4" in line for line in lines[1:])
    assert (
        lines[0]
        == "each run asks for at least 1 cores, 1 GB, 1 GPU L4 or A10G 20 GB, spot or on demand, at most $1.00/h"
    )
    assert DstackBackend(PLAIN.with_(gpu=("H100",)), Path()).offers(LEAST)[1:] == [
        "no machine is on offer that would do"
    ]


def test_what_the_server_refuses_is_a_sentence(story: Story, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"dstack refuses: .*python") as caught:
        submit(tmp_path, PLAIN.with_(python="3.2"), operator.add, 1, 2)
    assert "\n" not in str(caught.value) and caught.value.ids == []
    with pytest.raises(DstackError, match="does not know the token"):
        Api(story.cluster.server._replace(token="wrong")).runs(["a"])
    with pytest.raises(DstackError, match=r"dstack refuses: the project absent"):
        Api(story.cluster.server._replace(project="absent")).project("fleets/list")
    with pytest.raises(DstackError, match="does not answer"):
        Api(Server("http://127.0.0.1:9", "token", PROJECT)).runs(["a"])


def test_without_a_fleet_a_run_fails_and_says_so(story: Story) -> None:
    story.job("nowhere")
    state = story.state("nowhere")
    assert state.state == "failed" and "no capacity" in state.reason
    assert "fleets" in state.reason
    empty = Api(story.cluster.server._replace(project=EMPTY))
    until(lambda: empty.runs([story.homeless])[story.homeless]["status"] == "failed", "the run to fail")
    reason = "no capacity (no matching fleet found)"
    assert state_of(empty.runs([story.homeless])[story.homeless]) == QueueState("failed", reason)


def test_a_run_that_is_asked_to_stop_stops(story: Story) -> None:
    until(lambda: story.state("stopped").state == "running", "the run to start")
    until(lambda: list(story.cluster.folder.glob(f"*/*/.rldsl/jobs/{story.jobs['stopped'].job_id}*")), "its process")
    story.jobs["stopped"].cancel()
    story.job("stopped")
    assert story.state("stopped") == QueueState("cancelled", "stopped", story.state("stopped").where)


def test_success_brings_the_value_and_the_log_home(story: Story) -> None:
    job = story.job("success")
    assert job.result() == "done for you"
    assert "grüße, you\nend of a line" in job.stdout()
    assert "@@" not in job.stdout() and "\r\n" not in job.stdout()
    assert story.state("success").state == "done"
    assert len(Api().runs([one.job_id for one in story.jobs.values()])) == len(story.jobs)


def test_failure_brings_the_exception_home(story: Story) -> None:
    job = story.job("failure")
    assert "ZeroDivisionError" in str(job.exception())
    with pytest.raises(FailedJobError):
        job.result()
    assert story.state("failure")[:2] == ("failed", "exit 1")


def test_a_function_that_raises_is_not_run_again_and_again(story: Story) -> None:
    job = story.job("raises")
    assert "ZeroDivisionError" in str(job.exception())
    run = Api().runs([job.job_id])[job.job_id]
    assert run["status"] == "done" and story.state("raises").state == "done"
    assert len(list(story.cluster.folder.glob(f"*/job-*/.rldsl/jobs/{job.job_id}_submitted.pkl"))) == 1
    assert "cost" in run and DstackBackend(Dstack(), Path()).spending([job.job_id]).cost == 0, "one's own machines"


def test_the_function_of_the_page_runs_on_a_machine_with_its_own_environment(cluster: Cluster, tmp_path: Path) -> None:
    """The machine has neither rldsl nor this checkout: what it needs is uploaded or installed."""
    page = (ROOT / "docs" / "dstack.md").read_text().partition("## Functions of your own")[2]
    (block,) = parse_blocks(page, "dstack.md")
    (tmp_path / "add.py").write_text(block.body)
    done = subprocess.run([sys.executable, "add.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "3\n", done.stderr
    assert not list((cluster.folder.parent / "environment").rglob("*rldsl*"))


def test_a_run_beyond_its_time_is_ended(story: Story) -> None:
    story.job("too long")
    assert story.state("too long")[:2] == ("failed", "time limit")


def test_a_killed_job_is_tried_again_elsewhere_and_goes_on_bit_for_bit(
    story: Story, hub: Hub, uninterrupted: Project
) -> None:
    until(lambda: story.killed, "the first checkpoint", 120)
    until(lambda: run_state(story.run) == "done", "the second life", 200)
    said = story.project.python("exp.py", "status")
    assert " done" in said.stdout, said.stdout + said.stderr
    session = story.project.session
    happened = [event["event"] for event in events(session)]
    assert happened.count("started") == 2 and happened.count("submitted") == 1 and happened[-1] == "done"
    resumed = [event for event in events(session) if event["event"] == "started"][1]
    assert resumed["frame"] > 0
    assert work(session) == work(uninterrupted.session)
    assert_same_weights(hub, story.project, uninterrupted)


def run_state(name: str) -> str:
    return DstackBackend(Dstack(), Path()).states([name])[name].state


def assert_same_weights(hub: Hub, project: Project, other: Project) -> None:
    """Of the last checkpoint on the Hub, which stays there, and that of the run that was left alone.

    Apart from the copy of the metrics, which have times.
    """
    relative = project.session.relative_to(project.runs)
    ours = load_checkpoint(other.session / "checkpoints")
    assert ours is not None
    name = f"{relative}/checkpoints/{ours.frame:012d}/arrays.safetensors"
    stored, left_alone = (
        {key: array.tobytes() for key, array in load(data).items() if "metrics" not in key}
        for data in (hub.repo(RESULTS).files[name], (ours.path / "arrays.safetensors").read_bytes())
    )
    assert stored == left_alone


def test_the_jobs_ran_the_copy_of_the_code_that_was_uploaded(story: Story) -> None:
    folders = [path.parents[2] for path in story.cluster.folder.glob(f"*/job-*/.rldsl/jobs/{story.run}_submitted.pkl")]
    assert len(folders) == 2
    for folder in folders:
        assert (folder / ".rldsl/code/project/exp.py").is_file()
        assert (folder / ".rldsl/code/lib/rldsl/__init__.py").is_file()
        assert not list(folder.glob(".rldsl/code/project/runs*"))


def test_a_token_is_in_nothing_that_was_written_uploaded_or_printed(story: Story, hub: Hub) -> None:
    tokens = [TOKEN.encode(), story.cluster.server.token.encode()]
    places = [story.project.root, story.cluster.folder, *{job.paths.folder for job in story.jobs.values()}]
    written = [path for place in places for path in place.rglob("*") if path.is_file()]
    texts = [*(path.read_bytes() for path in written), *hub.bodies, *hub.repo(RESULTS).files.values()]
    texts += [
        Api().log(run).encode()
        for run in Api().runs([story.run, *(job.job_id for job in story.jobs.values())]).values()
    ]
    assert len(written) > 100
    assert not [text[:200] for text in texts for token in tokens if token in text]
    assert not Path("/tmp/never").exists()


def test_runs_that_have_ended_can_be_forgotten(story: Story) -> None:
    job = story.job("nowhere")
    Api().delete([job.job_id])
    until(lambda: not Api().runs([job.job_id]), "the run to be gone")
    assert FLEET in DstackBackend(Dstack(), Path()).check()[1].words
    assert DstackExecutor.affinity() == 0


def test_every_command_of_the_page_does_what_it_says(
    cluster: Cluster, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it stands, but for the address of the Hub: machines know no other than the real one. What it says of life
    without a server is read with the other pages."""
    monkeypatch.setattr(test_commands, "TIMEOUT", 240)  # a run waits for its machine
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{DSTACK}")
    server = ("--url", cluster.server.url, "--token", SERVER_TOKEN)
    subprocess.run([DSTACK / "dstack", "project", "add", "--name", PROJECT, *server, "-y"], check=True)
    page, without_a_server, _ = (ROOT / "docs" / "dstack.md").read_text().partition("Without a server")
    assert without_a_server
    page = page.replace("<!-- not run: needs a dstack server -->", "<!-- output varies -->")
    there = f"env={{'HF_ENDPOINT': '{hub.url}', 'HF_HUB_DISABLE_XET': '1'}}"
    page = page.replace("""secrets=("hf_token",))""", f"""secrets=("hf_token",), {there})""")
    reader = test_commands.Reader(tmp_path / "reader")
    assert reader.read(parse_blocks(page, "dstack.md")) >= 8
    (record,) = (reader.home / "runs" / ".jobs" / "tickets.jsonl").read_text().splitlines()
    assert "cartpole-random" in record
    assert [events(path)[-1]["event"] for path in Project(reader.home).sessions] == ["done"] * 4
