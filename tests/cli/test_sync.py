"""`sync` copies sessions to the real Weights & Biases and trackio, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rldsl.report.sync import SessionCopy, mark_of
from rldsl.store.metrics import MetricsWriter
from rldsl.store.runs import Runs
from tests.cli.conftest import Trained
from tests.project import rows
from tests.report.test_trial_curves import PPO_ONE, written

BLOCK, HEADER, FILE_HEADER = 32768, 7, 7


def records(path: Path) -> Iterator[Any]:
    """The records of an offline run: a log in LevelDB's format (blocks; checksum, length and type before each part)."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts = path.read_bytes(), FILE_HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:  # padding at the end of a block
            at += BLOCK - at % BLOCK
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts += data[at + HEADER : at + HEADER + length]
        at += HEADER + length
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(parts)
            parts = b""


def sync(trained: Trained, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from rldsl.cli import run; run()", "sync", *arguments],
        cwd=trained.project.root,
        env={**os.environ, "WANDB_MODE": "offline", **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_wandb_gets_every_log_point_once(trained: Trained) -> None:
    ran = sync(trained, "runs", "--only", "random")
    assert ran.returncode == 0, ran.stderr
    ids = [f"{path.parent.name.rpartition('-')[2]}-s{seed}" for seed, path in enumerate(trained.project.sessions)]
    assert ran.stdout.splitlines() == [
        *(f"cartpole/random {id}: 10 log points" for id in ids),
        "2 sessions in the project rldsl of wandb",
    ]
    for id, session in zip(ids, trained.project.sessions, strict=True):
        (file,) = trained.project.runs.glob(f".sync/wandb/offline-run-*/run-{id}.wandb")
        found = list(records(file))
        (run,) = [one.run for one in found if one.WhichOneof("record_type") == "run"]
        assert (run.run_id, run.project, run.run_group) == (id, "rldsl", "cartpole/random")
        assert {"agent", "env", "budget", "seed"} <= {item.key for item in run.config.update}
        history = [
            {item.nested_key[0] if item.nested_key else item.key: item.value_json for item in one.history.item}
            for one in found
            if one.WhichOneof("record_type") == "history"
        ]
        points = rows(session)
        assert [int(one["_step"]) for one in history] == [int(row["frame"]) for row in points]
        assert [float(one["charts/episode_return"]) for one in history] == [
            float(row["episode_return"]) for row in points
        ]
        (ended,) = [one.exit for one in found if one.WhichOneof("record_type") == "exit"]
        assert ended.exit_code == 0
    again = sync(trained)
    assert again.stdout == "2 sessions in the project rldsl of wandb\n", "nothing is copied twice"
    assert len(list(trained.project.runs.glob(".sync/wandb/offline-run-*"))) == 2


def test_trackio_gets_every_log_point_once(trained: Trained, tmp_path: Path) -> None:
    if find_spec("trackio") is None:
        pytest.skip("trackio is not installed: pip install '.[trackio]'")
    for number in ("10 log points", None):
        ran = sync(trained, "--to", "trackio", "--project", "mine", TRACKIO_DIR=str(tmp_path))
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("log points") == (2 if number else 0)
    code = (
        "from trackio.sqlite_storage import SQLiteStorage as s\n"
        "for run in s.get_runs('mine'):\n"
        "    logs, seed = s.get_logs('mine', run), s.get_run_config('mine', run)['seed']\n"
        "    print(run, *(one['step'] for one in logs), logs[-1]['charts/episode_return'], seed)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TRACKIO_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    for seed, (line, session) in enumerate(
        zip(sorted(told.stdout.splitlines()), trained.project.sessions, strict=True)
    ):
        name, id, *steps, last, stored = line.split()
        assert (name, id) == ("cartpole/random", f"{session.parent.name.rpartition('-')[2]}-s{seed}")
        assert [int(step) for step in steps] == [int(row["frame"]) for row in rows(session)]
        assert float(last) == float(rows(session)[-1]["episode_return"]) and int(stored) == seed


def test_mistakes_are_a_sentence(trained: Trained) -> None:
    assert sync(trained, "--to", "wandbb").stderr == "error: --to wandbb: did you mean wandb?\n"
    assert sync(trained, "nowhere.py").stderr.startswith("error: ")
    if find_spec("trackio") is None:
        assert "pip install 'rldsl[trackio]'" in sync(trained, "--to", "trackio").stderr


class Kept:
    """A tracker that keeps what it is told."""

    def __init__(self, keeps_open: bool) -> None:
        self.keeps_open, self.log_points, self.opened, self.finished = keeps_open, [], 0, []

    def open(self, info: Any) -> Kept:
        self.opened += 1
        return self

    def log(self, step: int, values: dict[str, float]) -> None:
        self.log_points.append((step, values.get("charts/episode_return")))

    def finish(self, failed: bool) -> None:
        self.finished.append(failed)


@pytest.mark.parametrize("keeps_open", [True, False])
def test_a_running_session_is_followed_to_its_end(tmp_path: Path, keeps_open: bool) -> None:
    written(tmp_path, PPO_ONE.seeds(1))
    (session,) = Runs(tmp_path).sessions()
    journal = session.journal.path
    whole = journal.read_text()
    journal.write_text(whole.rpartition('{"time"')[0])  # without `done`
    sink, mark = Kept(keeps_open), mark_of(session, "kept", "mine")
    copy = SessionCopy(session, sink, mark)
    assert (copy.push(), copy.push(), copy.ended) == (10, 0, False)
    writer = MetricsWriter(session.metrics, ("frame", "seconds", "episode_return", "q"))
    writer.write({"frame": 11_000, "seconds": 1.0, "episode_return": 7.0, "q": float("nan")})
    assert copy.push() == 1 and sink.log_points[-1] == (11_000, 7.0)
    assert (sink.opened, sink.finished) == ((1, []) if keeps_open else (2, [False, False]))
    later = SessionCopy(session, sink, mark)
    assert later.push() == 0, "another process goes on where this one was"
    session.journal.append("failed", frame=11_000, reason="of this test")
    assert copy.push() == 0 and copy.ended and sink.finished[-1] is (keeps_open or False)
    assert SessionCopy(session, sink, mark).ended
