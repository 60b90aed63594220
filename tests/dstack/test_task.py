"""What a machine does, without dstack around it: the same entry, the same files, and a Hub on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from submitit.core.utils import DelayedSubmission

from rldsl.launch.dstack.backend import DstackBackend
from rldsl.launch.dstack.configuration import CODE, FOLDER, JOBS, PLAN
from rldsl.launch.dstack.task import HostTask
from rldsl.launch.jobs import Job
from rldsl.launch.process_end import STOPPED
from rldsl.spec.dstack import Dstack
from tests.hub.loopback import Hub
from tests.project import Project, events, until, work

pytestmark = pytest.mark.timeout(900)

RESULTS, NAME = "me/results", "run-1"
PATIENCE = 240.0
"""Seconds, on a machine that has other things to do."""
EXPERIMENT = """
    from rldsl import PPO, Classic, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).frames(24_576)
    ppo = cartpole.agent(PPO(rollout=32, minibatch=64, epochs=2{more})).log_every(512).checkpoint_every(512)

    if __name__ == "__main__":
        main(ppo)
"""


@dataclass
class Machine:
    """A working directory with what was uploaded."""

    root: Path
    task: HostTask
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def session(self) -> Path:
        return self.root / "runs" / self.task.directories[0]

    def start(self, **changes: Any) -> subprocess.Popen[str]:
        jobs = self.root / FOLDER / JOBS
        DelayedSubmission(replace(self.task, **changes)).dump(jobs / f"{NAME}_submitted.pkl")
        own = {"SUBMITIT_EXECUTOR": "dstack", "DSTACK_RUN_NAME": NAME, "DSTACK_NODE_RANK": "0", "DSTACK_NODES_NUM": "1"}
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "rldsl.launch.dstack.host", f"{FOLDER}/{JOBS}"],
            cwd=self.root,
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, **changes: Any) -> tuple[int, str]:
        process = self.start(**changes)
        printed, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, printed


class Makes:
    """Machines for an experiment, each with nothing but what was uploaded."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.machines: list[Machine] = []

    def experiment(self, more: str = "") -> None:
        self.project.write(EXPERIMENT.format(more=more))
        assert self.project.python("exp.py", "plan", "--out", "plan.json").returncode == 0

    def machine(self) -> Machine:
        root = self.project.root / f"machine-{len(self.machines)}"
        (root / FOLDER / JOBS).mkdir(parents=True)
        (root / FOLDER / CODE / "project").mkdir(parents=True)
        shutil.copy(self.project.root / "plan.json", root / FOLDER / JOBS / PLAN)
        shutil.copy(self.project.root / "exp.py", root / FOLDER / CODE / "project")
        (trial,) = json.loads((self.project.root / "plan.json").read_text())["trials"]
        directory = f"cartpole-v1/ppo-{trial['id']}/seed-0"
        task = HostTask(
            sessions=(f"{trial['id']}-s0",),
            directories=(directory,),
            file="project/exp.py",
            results=RESULTS,
            push_seconds=0.5,
        )
        self.machines.append(Machine(root, task))
        return self.machines[-1]


@pytest.fixture
def makes(project: Project, hub: Hub) -> Iterator[Makes]:
    hub.repos.clear()
    made = Makes(project)
    yield made
    for machine in made.machines:
        for process in machine.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def on_the_hub(hub: Hub, name: str) -> bytes | None:
    files = hub.repo(RESULTS).files if ("datasets", RESULTS) in hub.repos else {}
    return next((data for path, data in files.items() if path.endswith(name)), None)


def test_a_time_limit_and_a_signal_checkpoint_and_the_next_machine_goes_on(makes: Makes, hub: Hub) -> None:
    """Three lives on three machines, as one that was never disturbed."""
    makes.experiment()
    undisturbed = makes.project.start("exp.py")
    first = makes.machine().start()
    until(lambda: on_the_hub(hub, "manifest.json"), PATIENCE)
    os.killpg(first.pid, signal.SIGINT)
    said, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == STOPPED, said
    assert b'"stopped"' in (on_the_hub(hub, "journal.jsonl") or b"")
    second = makes.machine()
    code, said = second.run(seconds=0.1)
    assert code in (STOPPED, -signal.SIGUSR2) and "1 of 1 sessions resume from me/results" in said
    third = makes.machine()
    code, said = third.run()
    assert code == 0, said
    lives = [event["frame"] for event in events(third.session) if event["event"] == "started"]
    assert len(lives) in (2, 3) and lives[-1] > 0
    assert on_the_hub(hub, "metrics.csv") == (third.session / "metrics.csv").read_bytes()
    undisturbed.communicate(timeout=PATIENCE)
    assert undisturbed.returncode == 0
    assert work(third.session) == work(makes.project.session)


def test_a_session_that_began_here_goes_on_there(makes: Makes, hub: Hub) -> None:
    """What the Hub has already is not overwritten by what is older here."""
    makes.experiment()
    here = makes.project
    begun = here.start("exp.py")
    until(lambda: here.sessions and checkpoints(here.session), PATIENCE)
    begun.send_signal(signal.SIGINT)
    begun.communicate(timeout=PATIENCE)
    place = DstackBackend(Dstack(results=RESULTS, secrets=("hf_token",)), here.root / "runs")
    machine = makes.machine()
    job = Job(machine.task.sessions, here.session, ())
    place.upload_checkpoints([job])
    first = on_the_hub(hub, "journal.jsonl")
    assert first and b'"stopped"' in first
    code, said = machine.run()
    assert code == 0 and "1 of 1 sessions resume from me/results" in said
    assert events(machine.session)[-1]["event"] == "done"
    place.upload_checkpoints([job])
    assert b'"done"' in (on_the_hub(hub, "journal.jsonl") or b"")


def checkpoints(session: Path) -> list[Path]:
    return list((session / "checkpoints").glob("*"))


def test_one_that_fails_for_good_is_not_an_error_that_dstack_would_try_again(makes: Makes, hub: Hub) -> None:
    makes.experiment(more=", lr=1e38, max_grad_norm=None")
    machine = makes.machine()
    code, said = machine.run()
    assert code == 0, said
    assert events(machine.session)[-1]["event"] == "failed"
    assert b'"failed"' in (on_the_hub(hub, "journal.jsonl") or b"")


def test_what_cannot_be_taken_home_is_an_error(makes: Makes, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    makes.experiment()
    monkeypatch.setenv("HF_TOKEN", "hf_SomebodyElse0000000000000000")
    code, said = makes.machine().run()
    assert code == 1 and "the token in HF_TOKEN" in said
    assert "SomebodyElse" not in said


def test_a_volume_is_written_to_and_nothing_is_asked_of_the_hub(makes: Makes, hub: Hub) -> None:
    makes.experiment(more=", lr=1e38, max_grad_norm=None")
    volume = makes.project.root / "volume"
    before = len(hub.requests)
    code, said = makes.machine().run(results=str(volume), retried=False)
    assert code == 1, said
    (session,) = volume.glob("*/*/seed-0")
    assert events(session)[-1]["event"] == "failed"
    assert len(hub.requests) == before
