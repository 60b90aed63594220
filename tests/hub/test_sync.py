"""Sessions are pushed from one run directory and pulled into another: complete, and only what changed."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError
from rldsl.hub.snapshot import is_synced, snapshot
from rldsl.hub.sync import Sync, merge_journals
from rldsl.store.append_only_ring import AppendOnlyRing
from rldsl.store.checkpoint import checkpoint_frames, load_checkpoint, save_checkpoint
from rldsl.store.journal import fold, read_journal
from rldsl.store.metrics import MetricsWriter, last_row
from rldsl.store.session_dir import SessionDir
from tests.hub.loopback import TOKEN, Hub

NAME = "me/results"
SESSION = "cartpole-v1/ppo-0123456789ab/seed-0"
SHORT = (0.01, 0.01)
LAP = 64


class TrainingSession:
    """Writes a session as training does: metrics, then a checkpoint with a growing replay buffer."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.directory = SessionDir.create(runs, SESSION, {"experiment": "cartpole/ppo"}, "# gin\n")
        self.metrics = MetricsWriter(self.directory.metrics, ["frame", "episode_return"])
        self.saved: dict[int, Any] = {}

    def train_to(self, frame: int) -> Path:
        self.metrics.write({"frame": frame, "episode_return": frame / 7})
        state = {"weights": np.full(9, float(frame)), "replay": self._replay(frame)}
        path = save_checkpoint(self.directory.checkpoints, frame, state)
        self.directory.journal.append("checkpoint", frame=frame)
        return path

    def _replay(self, frame: int) -> AppendOnlyRing:
        rows = np.arange(LAP, dtype=np.float64)
        return AppendOnlyRing(0, frame, LAP, lambda first, last: {"row": rows[first:last]}, self.saved)

    def sync(self) -> Sync:
        return Sync(Repository(NAME, SHORT), self.runs, [SESSION])


@pytest.fixture
def training(hub: Hub, tmp_path: Path) -> TrainingSession:
    Repository(NAME).create()
    return TrainingSession(tmp_path / "training")


def elsewhere(tmp_path: Path) -> Sync:
    return Sync(Repository(NAME, SHORT), tmp_path / "elsewhere", [SESSION])


def rows(checkpoint: Any) -> list[float]:
    return [float(one) for _, arrays in checkpoint.state["replay"] for one in arrays["row"]]


def short(paths: set[str]) -> set[str]:
    return {path.removeprefix(f"{SESSION}/") for path in paths}


def test_a_pulled_session_can_be_resumed(training: TrainingSession, tmp_path: Path) -> None:
    for frame in (16, 32):
        training.train_to(frame)
    save_checkpoint(training.directory.checkpoints, 32, {"weights": np.ones(2)}, tag="best")
    training.sync().push()
    assert elsewhere(tmp_path).pull() == [SESSION]
    pulled = SessionDir(tmp_path / "elsewhere" / SESSION)
    assert pulled.read_state() == training.directory.read_state()
    assert pulled.metrics.read_bytes() == training.directory.metrics.read_bytes()
    assert checkpoint_frames(pulled.checkpoints) == [32, 16]
    loaded = load_checkpoint(pulled.checkpoints)
    assert loaded is not None and loaded.frame == 32 and not loaded.damaged
    assert rows(loaded) == list(range(32))
    best = load_checkpoint(pulled.checkpoints, tag="best")
    assert best is not None and best.frame == 32
    resumed = TrainingSession(tmp_path / "elsewhere")
    resumed.saved = dict(loaded.state["replay"].saved)
    resumed.train_to(48)
    assert rows(load_checkpoint(pulled.checkpoints)) == list(range(48))


def test_files_shared_by_checkpoints_are_transferred_once_and_shared_again(
    hub: Hub, training: TrainingSession, tmp_path: Path
) -> None:
    sync = training.sync()
    for frame in (16, 32):
        training.train_to(frame)
        sync.push()
    assert len(hub.uploads()) == len(set(hub.uploads()))
    before = len(hub.requests)
    elsewhere(tmp_path).pull()
    large = [path for method, path in hub.requests[before:] if method == "GET" and path.endswith(".safetensors")]
    contents = {hub.repo(NAME).files[path.split("/", 6)[6]] for path in large}
    assert len(large) == len(contents)
    shared = [path for path in (tmp_path / "elsewhere").rglob("*.safetensors") if path.stat().st_nlink == 2]
    assert shared


def test_only_what_changed_is_pushed(hub: Hub, training: TrainingSession) -> None:
    sync = training.sync()
    training.train_to(16)
    assert sync.push()
    assert not sync.push()
    commits = len(hub.repo(NAME).commits)
    training.metrics.write({"frame": 20, "episode_return": 1.0})
    assert sync.push()
    assert short(hub.repo(NAME).written[-1]) == {"metrics.csv"}
    assert len(hub.repo(NAME).commits) == commits + 1


def test_a_pruned_checkpoint_is_deleted_in_the_same_commit(hub: Hub, training: TrainingSession) -> None:
    sync = training.sync()
    for frame in (16, 32, 48):
        training.train_to(frame)
        sync.push()
    folders = {path.split("/")[1] for path in short(set(hub.repo(NAME).files)) if path.startswith("checkpoints/")}
    assert folders == {"000000000032", "000000000048"}
    assert len(hub.repo(NAME).commits) == 4


def test_pulled_files_are_not_pushed_again(hub: Hub, training: TrainingSession, tmp_path: Path) -> None:
    training.train_to(16)
    training.sync().push()
    sync = elsewhere(tmp_path)
    sync.pull()
    assert not sync.push()
    before = len(hub.requests)
    elsewhere(tmp_path).pull()
    assert not [path for _, path in hub.requests[before:] if "/resolve/" in path]


def test_a_failed_push_is_repeated_by_the_next(hub: Hub, training: TrainingSession, quick: None) -> None:
    sync = training.sync()
    training.train_to(16)
    hub.failures += [("POST .*/commit/", 500)] * 3
    with pytest.raises(HubError):
        sync.push()
    assert sync.push()
    assert f"{SESSION}/metrics.csv" in hub.repo(NAME).files


def test_incomplete_lines_and_local_files_are_not_pushed(hub: Hub, training: TrainingSession) -> None:
    training.train_to(16)
    for name in ("journal.jsonl", "metrics.csv", "log.txt"):
        with (training.directory.path / name).open("a") as file:
            file.write("half a li")
    for name in ("alive.json", "lock", ".session.json.1-ab.tmp", "checkpoints/.tmp-000000000048-1/state.json", "x.py"):
        (training.directory.path / name).parent.mkdir(exist_ok=True)
        (training.directory.path / name).write_text("{}")
    training.sync().push()
    files = hub.repo(NAME).files
    for name in ("journal.jsonl", "metrics.csv"):
        assert files[f"{SESSION}/{name}"].endswith(b"\n")
    assert files[f"{SESSION}/log.txt"] == b""
    left = {path.split("/")[-1] for path in files}
    assert not left & {"alive.json", "lock", "x.py", ".session.json.1-ab.tmp"}
    assert not any(".tmp-" in path for path in files)


def test_pull_without_checkpoints(training: TrainingSession, tmp_path: Path) -> None:
    training.train_to(16)
    save_checkpoint(training.directory.checkpoints, 16, {"weights": np.ones(2)}, tag="best")
    training.sync().push()
    elsewhere(tmp_path).pull(checkpoints=False)
    pulled = SessionDir(tmp_path / "elsewhere" / SESSION)
    assert checkpoint_frames(pulled.checkpoints) == []
    assert load_checkpoint(pulled.checkpoints, tag="best") is not None
    assert last_row(pulled.metrics) == last_row(training.directory.metrics)


def test_a_session_that_is_ahead_of_the_repository_is_not_changed(training: TrainingSession, tmp_path: Path) -> None:
    training.train_to(16)
    training.sync().push()
    local = TrainingSession(tmp_path / "elsewhere")
    local.train_to(16)
    local.train_to(32)
    before = {path: path.read_bytes() for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()}
    elsewhere(tmp_path).pull()
    assert {path: path.read_bytes() for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()} == before


HOSTILE = [
    "../evil.json",
    f"{SESSION}/../../../../evil.json",
    f"{SESSION}/checkpoints/../../evil.json",
    f"{SESSION}/checkpoints/000000000016/../../../evil.json",
    f"{SESSION}/checkpoints/../evil.json",
    f"{SESSION}//evil.json",
    f"{SESSION}/evil.py",
    f"{SESSION}/.bashrc",
    f"{SESSION}/checkpoints/000000000016/evil.pkl",
    f"{SESSION}/tb/../../evil.json",
    f"{SESSION}/tb/events.\\..\\evil",
    f"{SESSION}/lock",
    f"{SESSION}/alive.json",
    "/evil.json",
]


def test_hostile_paths_are_not_downloaded(hub: Hub, training: TrainingSession, tmp_path: Path) -> None:
    training.train_to(16)
    training.sync().push()
    expected = short(set(hub.repo(NAME).files)) - {".gitattributes"}
    evil = {**hub.repo(NAME).files, **dict.fromkeys(HOSTILE, b"evil")}
    hub.repo(NAME).commit(evil, set())
    elsewhere(tmp_path).pull()
    session = tmp_path / "elsewhere" / SESSION
    pulled = {str(path.relative_to(session)) for path in tmp_path.glob("elsewhere/**/*") if path.is_file()}
    assert pulled == expected
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("name", ["journal.jsonl", "provenance-2.json", "tree.diff", "checkpoints/best/state.json"])
def test_the_files_of_a_session_are_synced(name: str) -> None:
    assert is_synced(name)


def test_journals_of_two_machines_are_merged_whatever_their_clocks_say(tmp_path: Path) -> None:
    def write(name: str, *events: tuple[float, str]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps({"time": time, "event": event}) + "\n" for time, event in events))
        return path

    local = write("local", (10, "created"), (11, "submitted"))
    remote = write("remote", (2, "created"), (3, "started"), (9, "checkpoint"), (1, "started"), (20, "done"))
    result = tmp_path / "journal.jsonl"
    result.write_bytes(merge_journals(local, remote))
    events = [event["event"] for event in read_journal(result)]
    assert [name for name in events if name != "submitted"] == ["created", "started", "checkpoint", "started", "done"]
    assert "submitted" in events
    assert fold(read_journal(result)).status == "done"
    assert merge_journals(result, remote) == result.read_bytes()
    assert merge_journals(tmp_path / "none", remote) == remote.read_bytes()


def test_a_snapshot_is_consistent_at_any_time(training: TrainingSession, tmp_path: Path) -> None:
    """Checkpoints are written and pruned as fast as possible while snapshots are taken."""
    stop = threading.Event()

    def train() -> None:
        for frame in range(1, 10_000):
            if stop.is_set():
                return
            training.metrics.write({"frame": frame, "episode_return": 1.0})
            save_checkpoint(training.directory.checkpoints, frame, {"weights": np.full(9, float(frame))})

    training.train_to(0)
    thread = threading.Thread(target=train)
    thread.start()
    try:
        for number in range(40):
            stage = tmp_path / f"copy-{number}"
            snapshot(training.directory.path, stage)
            loaded, row = load_checkpoint(stage / "checkpoints"), last_row(stage / "metrics.csv")
            assert loaded is not None and not loaded.damaged
            assert row is not None and row["frame"] >= loaded.frame
    finally:
        stop.set()
        thread.join()


def test_the_token_is_not_written_anywhere(hub: Hub, training: TrainingSession, tmp_path: Path) -> None:
    training.train_to(16)
    training.sync().push()
    elsewhere(tmp_path).pull()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written and not [path for path in written if TOKEN.encode() in path.read_bytes()]
    assert not [body for body in hub.bodies if TOKEN.encode() in body]
