"""One damaged file in a run directory costs one line: every command goes on with the rest."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from rldsl.cli.app import run_rldsl
from rldsl.cli.load import load
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.report import sinks, tensorboard
from rldsl.report.sinks import RunInfo
from rldsl.store.runs import Runs
from tests.hub.loopback import TOKEN, running_hub
from tests.monitor.drive import Driver, drive
from tests.monitor.test_robust import visit_every_screen
from tests.project import Project
from tests.report.finished import FRAMES, finish, rising

Run = Callable[..., None]

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1")).log_every(50)
    random = cartpole.agent(Random()).frames(200).seeds(3)

    if __name__ == "__main__":
        main(random)
"""
GARBAGE = bytes(range(256)) * 4
DEEP = b"[" * 5000 + b"]" * 5000
TYPES = b'{"experiment": [1], "frames": "x", "target": {"score": "y"}, "trial": 5, "schema": [], "event": 3}\n'
MARKUP = b'{"experiment": "[/red]\\u001b[2J", "frames": 1e999, "trial": null, "event": "\\u001b[2J", "time": "x"}\n'
DAMAGES: dict[str, Callable[[bytes], bytes] | None] = {
    "garbage": lambda whole: GARBAGE + b"\n",
    "truncated": lambda whole: whole[: len(whole) // 2],
    "deep": lambda whole: DEEP + b"\n",
    "list": lambda whole: b"[]\n",
    "types": lambda whole: TYPES,
    "markup": lambda whole: MARKUP,
    "empty": lambda whole: b"",
    "missing": None,
    "folder": None,
}
"""What may become of a file."""
FILES = ("session.json", "journal.jsonl", "metrics.csv", "provenance.json", "alive.json")
PLANNED = """
    from rldsl import PPO, Classic, experiment, main

    def trial(gamma):
        env = Classic("CartPole-v1", num_envs=4)
        return experiment("cartpole").env(env).agent(PPO(gamma=gamma)).frames(10_000).log_every(50).seeds(9)

    whole = trial(0.9).named("whole")
    session = trial(0.91).named("session")
    journal = trial(0.92).named("journal")
    metrics = trial(0.93).named("metrics")
    provenance = trial(0.94).named("provenance")
    alive = trial(0.95).named("alive")
    main(whole, session, journal, metrics, provenance, alive)
"""


def damage(path: Path, kind: str) -> None:
    whole = path.read_bytes() if path.exists() else b'{"host": "x", "pid": 5, "time": 5.0}\n'
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif (content := DAMAGES[kind]) is not None:
        path.write_bytes(content(whole))


@pytest.fixture(scope="module")
def everything_damaged(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A whole trial, and one for each kind of file, of which each seed has this file damaged in another way."""
    project = Project(tmp_path_factory.mktemp("damaged"))
    for declared in load(project.write(PLANNED)):
        curves = [rising(100.0 + seed) for seed in range(len(DAMAGES))]
        for directory, kind in zip(
            finish(project.runs, make_plan([Overridden(declared)]), curves), DAMAGES, strict=True
        ):
            sha256 = hashlib.sha256(directory.metrics.read_bytes()).hexdigest()
            directory.journal.append("done", frame=FRAMES, metrics={"sha256": sha256, "rows": len(curves[0])})
            for name in (one for one in FILES if one.startswith(declared.name)):
                damage(directory.path / name, kind)
    return project


class Forgetful:
    """A tracker that forgets everything; tests/cli/test_sync.py has the real ones."""

    keeps_open = False

    def open(self, info: RunInfo) -> Forgetful:
        return self

    def log(self, step: int, values: Mapping[str, float]) -> None:
        pass

    def finish(self, failed: bool) -> None:
        pass


READING = {
    "status exp.py": "whole",
    "plan exp.py --all": "whole",
    "logs exp.py": "whole",
    "stop exp.py": "nothing is running",
    "list": "whole",
    "list --json": "whole",
    "report runs --out out": "whole",
    "report exp.py --out out": "whole",
    "audit runs": "accepted whole",
    "audit exp.py --json": "whole",
    "audit {session}": "0 results|left out",
    "results add exp.py --results results": "whole.json: 104.0, 9 seeds",
    "compare runs runs": "3 comparisons: 3 unclear",
    "compare exp.py exp.py": "not compared: no session of journal in A is done",
    "plot runs": "whole 104|seed-8: metrics.csv cannot be read|seed-1: metrics.csv was changed",
    "plot exp.py": "whole 104",
    "plot runs --x updates --stat seeds": "whole",
    "diff {whole}-s0 {session}-s0": "cannot be read",
    "diff {whole}-s0 {provenance}-s0": "gamma",
    "sync runs": "whole {whole}-s8: 200 log points",
    "push runs --repo someone/runs": "sessions pushed",
    "tensorboard runs": "53 sessions",
    "prune": "nothing to remove",
}
"""Every command that reads a run directory, and what it says."""
FAILS = ("audit", "results", "compare", "sync", "push")
"""Commands whose exit code tells that something could not be used."""


@pytest.mark.parametrize("command", READING)
def test_every_command_goes_on_with_the_rest(
    command: str, everything_damaged: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In this process, so that any exception but a sentence fails the test."""
    monkeypatch.chdir(everything_damaged.root)
    monkeypatch.setattr(sinks, "make_sink", lambda *words: Forgetful())
    monkeypatch.setattr(tensorboard, "tensorboard_command", lambda *words: [sys.executable, "-c", ""])
    trials = {one.recorded().experiment: str(one.trial) for one in Runs(everything_damaged.runs).sessions()}
    with hub(monkeypatch, everything_damaged.root) if "push" in command else nullcontext():
        code = run_rldsl(command.format(**trials, session=trials["?"]).split())
    printed = capfd.readouterr()
    said = printed.out + printed.err
    assert code == int(command.startswith(FAILS)), said
    assert all(words in said for words in READING[command].format(**trials).split("|"))
    assert "Traceback" not in said and "\x1b[2J" not in said
    bad = [line for line in said.splitlines() if "seed-0/session.json" in line]
    assert len(bad) <= (2 if command.startswith("compare") else 1), "one bad file costs one line"


@contextmanager
def hub(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[None]:
    with running_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HOME", str(home / "hf-home"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        yield


def test_the_monitor_shows_the_rest(everything_damaged: Project) -> None:
    async def scenario(driver: Driver) -> None:
        assert len(driver.app.index.trackers) == len(list(Runs(everything_damaged.runs).sessions()))
        await visit_every_screen(driver)

    drive(everything_damaged.runs, scenario)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Project(tmp_path_factory.mktemp("trained"))
    made.write(EXPERIMENT)
    assert made.python("exp.py").returncode == 0
    return made.root


@pytest.fixture
def damaged(trained: Path, project: Project) -> Project:
    shutil.copytree(trained, project.root, dirs_exist_ok=True)
    return project


COMMANDS = (["status", "exp.py"], ["plan", "exp.py", "--all"], ["stop", "exp.py"], ["list"], ["audit", "runs"])


@pytest.fixture
def run_all(damaged: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the commands that ask queues, in this process, so that any other exception fails the test."""
    monkeypatch.chdir(damaged.root)

    def run() -> None:
        for command in COMMANDS:
            code = run_rldsl(command)
            printed = capfd.readouterr()
            text = printed.out + printed.err
            assert code in (0, 1), f"{command}: {text}"
            if "list" in command:
                assert "-s1" in text and "-s2" in text

    return run


def test_damaged_files_of_queues(damaged: Project, run_all: Run) -> None:
    jobs = damaged.runs / ".jobs"
    (jobs / "one").mkdir(parents=True)
    ids = [json.loads((path / "session.json").read_text())["id"] for path in damaged.sessions]
    record = {"backend": "local", "job_id": "one/0", "sessions": ids[:1], "submission": "one"}
    record |= {"launcher": {"kind": "local"}, "directories": [str(damaged.sessions[0].relative_to(damaged.runs))]}
    lines = [
        record,
        {**record, "sessions": ids[1:2], "launcher": {"kind": "nothing"}, "job_id": "1"},
        {**record, "directories": ["../../etc"]},
        {**record, "sessions": 5},
        {"stopped": [[1, 2, 3]]},
        [],
    ]
    text = "\n".join(map(json.dumps, lines)).encode() + b"\n" + DEEP + b"\n" + GARBAGE + b"\n"
    (jobs / "tickets.jsonl").write_bytes(text)
    journal = damaged.sessions[0] / "journal.jsonl"
    journal.write_text("".join(line + "\n" for line in journal.read_text().splitlines() if '"done"' not in line))
    for content in (GARBAGE, DEEP, b"{}", b'{"host": 5, "pid": "x", "start_time": []}', b'{"jobs": 5}'):
        for name in ("jobs.json", "keeper.json", "story.jsonl", "intent.json", "settled.json"):
            (jobs / "one" / name).write_bytes(content + b"\n")
        run_all()


def test_appends_do_not_follow_links(damaged: Project) -> None:
    target = damaged.root / "mine.txt"
    target.write_text("mine\n")
    journal, log = (damaged.sessions[0] / name for name in ("journal.jsonl", "log.txt"))
    journal.unlink()
    journal.symlink_to(target)
    damaged.python("exp.py")
    journal.unlink()
    log.unlink()
    log.symlink_to(target)
    said = damaged.python("exp.py")
    assert "log.txt" in said.stderr and "Traceback" not in said.stderr
    assert target.read_text() == "mine\n"
