"""A repository with 2,000 sessions: how many calls to the Hub a push of one changed session and a listing need.

`python -m tests.hub.test_scale` also measures how long they take, with the real command in a process of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rldsl.hub.checksums import SHA256SUMS
from rldsl.hub.index import INDEX, Index, read_index
from rldsl.hub.push import Push
from rldsl.hub.repository import Repository
from rldsl.report.dataset_card import DatasetCard
from rldsl.report.dataset_tables import shard_of
from rldsl.store.runs import Runs
from tests.hub.loopback import TOKEN, Hub, running_hub
from tests.hub.sessions import finished
from tests.project import environment

NAME = "me/results"
SEEDS, TRIALS = 4, 500
CALLS = 5


def fill(hub: Hub, runs: Path) -> None:
    """Pushes one trial, and multiplies it in the repository: 500 trials of 4 seeds, each with its files and rows."""
    finished(runs, scores=(100.0, 110.0, 120.0, 130.0))
    Push(Repository(NAME), runs, DatasetCard(NAME)).run(sorted(Runs(runs).existing()))
    files = dict(hub.repo(NAME).files)
    index = read_index(files[INDEX], NAME)
    (trial,) = {row.trial for row in index.rows.values()}
    rows, curves = dict(index.rows), files[shard_of(trial)]
    for number in range(1, TRIALS):
        other = f"{number:012x}"
        for row in index.rows.values():
            copy = replace(row, directory=row.directory.replace(trial, other), experiment=f"cartpole/ppo-{number}")
            rows[copy.directory] = copy
            files |= {new: files[old] for old, new in zip(row.paths, copy.paths, strict=True)}
        files.setdefault(shard_of(other), curves)
    files[INDEX] = Index(rows).data()
    assert len([path for path in files if path.endswith(SHA256SUMS)]) == SEEDS * TRIALS
    hub.repo(NAME).commit(files, set())


def change(runs: Path, value: float) -> None:
    """Another log line and score for one session."""
    session = next(iter(Runs(runs).sessions()))
    session.log.write_text(f"{time.time()}\n")
    lines = session.metrics.read_text().splitlines()
    frame, seconds, _ = lines[-1].split(",")
    session.metrics.write_text("\n".join([*lines[:-1], f"{frame},{seconds},{value}"]) + "\n")


def test_one_changed_session_of_2000_takes_few_calls(hub: Hub, tmp_path: Path) -> None:
    fill(hub, tmp_path)
    sessions = sorted(Runs(tmp_path).existing())
    for value in (1e3, 2e3):  # the first push finds that somebody else has committed since the last one from here
        change(tmp_path, value)
        before = len(hub.calls())
        pushed = Push(Repository(NAME), tmp_path, DatasetCard(NAME)).run(sessions)
    calls = hub.calls()[before:]
    assert len(pushed.sessions) == 1 and pushed.unchanged == 3
    assert len(calls) <= CALLS, calls
    written = hub.repo(NAME).written[-1]
    assert {"README.md", INDEX, "tables/runs.parquet", "tables/seeds.parquet"} <= written and len(written) < 12
    assert len(read_index(hub.repo(NAME).files[INDEX], NAME).rows) == SEEDS * TRIALS
    before = len(hub.calls())
    Repository(NAME).read(INDEX)
    assert len(hub.calls()) == before + 1


def main() -> None:
    """Prints the seconds and calls of a push and of a listing; the first push finds that others have committed."""
    home = Path(tempfile.mkdtemp())
    rldsl = str(Path(sys.executable).with_name("rldsl"))
    with running_hub() as hub:
        os.environ |= {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HOME": str(home / "hf"),
        }
        fill(hub, home / "runs")
        for number, command in enumerate((["push"], ["list", "--hub"]) * 4):
            change(home / "runs", 1e3 * number)
            calls, start = len(hub.calls()), time.perf_counter()
            ours = {name: value for name, value in os.environ.items() if name.startswith("HF_")}
            subprocess.run(
                [rldsl, *command, "--repo", NAME],
                cwd=home,
                env={**environment(), **ours},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            seconds = round(time.perf_counter() - start, 2)
            print(json.dumps({"command": command, "seconds": seconds, "calls": len(hub.calls()) - calls}))
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
