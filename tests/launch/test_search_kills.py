"""Searches whose driver and workers are killed at random moments: they continue as if nothing had happened.

`RLDSL_KILLS=20 pytest -s tests/launch/test_search_kills.py` kills each method 20 times and says whom. By default the
two methods whose decisions depend on results are killed three times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rldsl.search.history import History
from rldsl.search.schedule import Promote, StartNew, decide, schedule_of
from rldsl.search.suggest import suggester
from rldsl.store.search_dir import SearchDir
from tests.launch.coin import directory, journal, write
from tests.project import Project, command_line, environment, events, work

KILLS = int(os.environ.get("RLDSL_KILLS", "3"))
MOST_SECONDS = 6.0
"""A kill comes at most so many seconds after the one before: a driver and a worker take some of them to start."""
METHODS = {
    "random": "random(trials=6)",
    "sobol": "sobol(trials=6)",
    "asha": "asha(trials=7, grace=100, eta=2, min_results=4, seeds=(1, 2))",
    "nevergrad": 'nevergrad("OnePlusOne", trials=6, parallel=2)',
}
SLEEP = "0.004"
"""Seconds of each iteration, so that there is something to kill."""


def workers(project: Project) -> list[int]:
    """The live processes that drivers have started."""
    records = directory(project) / "workers.jsonl" if (project.runs / ".searches").exists() else Path("none")
    pids = [json.loads(line)["pid"] for line in records.read_text().splitlines()] if records.exists() else []
    return [pid for pid in pids if str(project.root) in command_line(pid)]


class Killer:
    """Runs a search again and again, and kills its driver, its workers or both at random moments."""

    def __init__(self, project: Project, seed: str) -> None:
        self.project, self.random = project, random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.spared = 0

    def run(self, kills: int) -> None:
        """Until the search has ended, which may be before it was killed so many times."""
        driver = self._start()
        while self._wait(driver, self.random.uniform(0.0, MOST_SECONDS) if kills else 120.0):
            assert kills, "it never ended"
            kills -= 1
            if self._kill(driver):
                driver = self._start()
        assert driver.returncode == 0, (self.project.root / "driver.txt").read_text()[-2000:]

    def _start(self) -> subprocess.Popen[bytes]:
        log = (self.project.root / "driver.txt").open("ab")
        command = [sys.executable, "exp.py", "search"]
        return subprocess.Popen(command, cwd=self.project.root, env=environment(), stdout=log, stderr=log)

    def _wait(self, driver: subprocess.Popen[bytes], seconds: float) -> bool:
        """Returns whether the driver still runs."""
        with suppress(subprocess.TimeoutExpired):
            driver.wait(seconds)
        return driver.returncode is None

    def _kill(self, driver: subprocess.Popen[bytes]) -> bool:
        """Returns whether the driver was killed. A worker that is killed three times in a row has failed."""
        running = workers(self.project)
        target = self.random.choice(["driver", "worker", "everything"]) if running and self.spared < 2 else "driver"
        self.kills[target] += 1
        self.spared = self.spared + 1 if target == "worker" else 0
        for pid in running if target != "driver" else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if target != "worker":
            driver.kill()
            driver.wait()
        return target != "worker"


@pytest.mark.timeout(120 + 40 * KILLS)
@pytest.mark.parametrize("method", METHODS if "RLDSL_KILLS" in os.environ else ["asha", "nevergrad"])
def test_a_search_that_is_killed_continues_as_if_nothing_had_happened(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = Project(tmp_path / "undisturbed")
    write(undisturbed, METHODS[method])
    assert undisturbed.python("exp.py", "search").returncode == 0
    monkeypatch.setenv("COIN_SLEEP", SLEEP)
    left, same, searches = KILLS, 0, 0
    while left:
        killed = Project(tmp_path / f"killed-{searches}")
        write(killed, METHODS[method])
        killer = Killer(killed, f"{method}-{searches}")
        killer.run(left)
        assert not workers(killed)
        left, searches = left - killer.kills.total(), searches + 1
        check_decisions(killed)
        check_sessions(killed)
        same += check_results(killed, undisturbed)
        print(f"{method}: {dict(killer.kills)}")
    print(f"{method}: {KILLS} kills in {searches} searches, {same} with the same order of results")


def check_decisions(project: Project) -> None:
    """Every point and every decision is the one that an undisturbed search makes after the same events."""
    search = SearchDir(directory(project))
    experiment, history = search.experiment(), list(search.events())
    schedule = schedule_of(experiment)
    for index, event in enumerate(history):
        before = history[:index]
        decision = decide(History.of(before), schedule)
        if event["event"] == "suggested":
            assert decision == StartNew(event["trial"])
            assert suggester(experiment).point(before) == event["point"]
        elif event["event"] == "started":
            new = StartNew(event["trial"]) if event["rung"] == 0 else Promote(event["trial"], event["rung"])
            assert decision == new
    results = [(event["trial"], event["rung"]) for event in history if event["event"] in ("finished", "failed")]
    assert len(set(results)) == len(results), "a result is journalled once"
    assert not any(event["event"] == "failed" for event in history)


def check_sessions(project: Project) -> None:
    """No session was trained further than it was asked to, or again after its end."""
    asked: dict[str, int] = {}
    names = {event["trial"]: event["id"] for event in journal(project) if event["event"] == "suggested"}
    for event in journal(project):
        for seed in event.get("seeds", ()):
            asked[f"{names[event['trial']]}/seed-{seed}"] = event["rung"]
    trained = {f"{one.parent.name.rpartition('-')[2]}/{one.name}": one for one in project.sessions}
    assert asked.keys() == trained.keys(), "no trial is lost"
    for session in trained.values():
        happened = [event["event"] for event in events(session)]
        assert happened.count("done") <= 1 and happened[-1:] != ["started"]
        frames = [int(row["frame"]) for row in work(session)]
        assert frames == sorted(set(frames)), "no log point twice"


def check_results(killed: Project, undisturbed: Project) -> bool:
    """Equal trials have equal results; with the same order of results, the journals are the same."""
    ours, theirs = journal(killed), journal(undisturbed)
    expected = results(theirs)
    for key, values in results(ours).items():
        assert expected.get(key, values) == values
    order = [
        [(event["trial"], event["rung"]) for event in one if event["event"] == "finished"] for one in (ours, theirs)
    ]
    if order[0] == order[1]:
        decided = [[event for event in one if event["event"] != "finished"] for one in (ours, theirs)]
        assert decided[0] == decided[1]
    return order[0] == order[1]


def results(events: list[dict[str, Any]]) -> dict[tuple[str, int], Any]:
    names = {event["trial"]: event["id"] for event in events if event["event"] == "suggested"}
    return {(names[one["trial"]], one["rung"]): one["values"] for one in events if one["event"] == "finished"}
