"""Sessions that travel: pushed from one run directory and pulled into another, whole, and only what changed of them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError
from rldsl.hub.snapshot import snapshot, travels
from rldsl.hub.sync import Sync, merged
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


class Work:
    """A session as training writes it: metrics, then a checkpoint that stands on them, with a replay that grows."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.directory = SessionDir.create(runs, SESSION, {"experiment": "cartpole/ppo"}, "# gin\n")
        self.metrics = MetricsWriter(self.directory.metrics, ["frame", "episode_return"])
        self.saved: dict[int, Any] = {}

    def go(self, frame: int) -> Path:
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
def work(hub: Hub, tmp_path: Path) -> Work:
    Repository(NAME).create()
    return Work(tmp_path / "there")


def home(tmp_path: Path) -> Sync:
    return Sync(Repository(NAME, SHORT), tmp_path / "home", [SESSION])


def rows(checkpoint: Any) -> list[float]:
    return [float(one) for _, arrays in checkpoint.state["replay"] for one in arrays["row"]]


def short(paths: set[str]) -> set[str]:
    return {path.removeprefix(f"{SESSION}/") for path in paths}


def test_a_session_that_was_pulled_opens_and_goes_on(work: Work, tmp_path: Path) -> None:
    for frame in (16, 32):
        work.go(frame)
    save_checkpoint(work.directory.checkpoints, 32, {"weights": np.ones(2)}, tag="best")
    work.sync().push()
    assert home(tmp_path).pull() == [SESSION]
    pulled = SessionDir(tmp_path / "home" / SESSION)
    assert pulled.read_state() == work.directory.read_state()
    assert pulled.metrics.read_bytes() == work.directory.metrics.read_bytes()
    assert checkpoint_frames(pulled.checkpoints) == [32, 16]
    loaded = load_checkpoint(pulled.checkpoints)
    assert loaded is not None and loaded.frame == 32 and not loaded.damaged
    assert rows(loaded) == list(range(32))
    best = load_checkpoint(pulled.checkpoints, tag="best")
    assert best is not None and best.frame == 32
    next_life = Work(tmp_path / "home")
    next_life.saved = dict(loaded.state["replay"].saved)
    next_life.go(48)
    assert rows(load_checkpoint(pulled.checkpoints)) == list(range(48))


def test_segments_that_checkpoints_share_travel_once_and_are_shared_again(hub: Hub, work: Work, tmp_path: Path) -> None:
    sync = work.sync()
    for frame in (16, 32):
        work.go(frame)
        sync.push()
    assert len(hub.uploads()) == len(set(hub.uploads()))
    before = len(hub.requests)
    home(tmp_path).pull()
    large = [path for method, path in hub.requests[before:] if method == "GET" and path.endswith(".safetensors")]
    contents = {hub.repo(NAME).files[path.split("/", 6)[6]] for path in large}
    assert len(large) == len(contents)
    shared = [path for path in (tmp_path / "home").rglob("*.safetensors") if path.stat().st_nlink == 2]
    assert shared


def test_only_what_changed_is_pushed(hub: Hub, work: Work) -> None:
    sync = work.sync()
    work.go(16)
    assert sync.push()
    assert not sync.push()
    commits = len(hub.repo(NAME).commits)
    work.metrics.write({"frame": 20, "episode_return": 1.0})
    assert sync.push()
    assert short(hub.repo(NAME).written[-1]) == {"metrics.csv"}
    assert len(hub.repo(NAME).commits) == commits + 1


def test_a_checkpoint_that_was_pruned_goes_there_too_in_the_same_commit(hub: Hub, work: Work) -> None:
    sync = work.sync()
    for frame in (16, 32, 48):
        work.go(frame)
        sync.push()
    folders = {path.split("/")[1] for path in short(set(hub.repo(NAME).files)) if path.startswith("checkpoints/")}
    assert folders == {"000000000032", "000000000048"}
    assert len(hub.repo(NAME).commits) == 4


def test_what_was_pulled_is_not_pushed_again(hub: Hub, work: Work, tmp_path: Path) -> None:
    work.go(16)
    work.sync().push()
    there = home(tmp_path)
    there.pull()
    assert not there.push()
    before = len(hub.requests)
    home(tmp_path).pull()
    assert not [path for _, path in hub.requests[before:] if "/resolve/" in path]


def test_a_push_that_failed_is_made_up_for(hub: Hub, work: Work, quick: None) -> None:
    sync = work.sync()
    work.go(16)
    hub.failures += [("POST .*/commit/", 500)] * 3
    with pytest.raises(HubError):
        sync.push()
    assert sync.push()
    assert f"{SESSION}/metrics.csv" in hub.repo(NAME).files


def test_half_lines_and_what_belongs_to_the_machine_stay(hub: Hub, work: Work) -> None:
    work.go(16)
    for name in ("journal.jsonl", "metrics.csv", "log.txt"):
        with (work.directory.path / name).open("a") as file:
            file.write("half a li")
    for name in ("alive.json", "lock", ".session.json.1-ab.tmp", "checkpoints/.tmp-000000000048-1/state.json", "x.py"):
        (work.directory.path / name).parent.mkdir(exist_ok=True)
        (work.directory.path / name).write_text("{}")
    work.sync().push()
    files = hub.repo(NAME).files
    for name in ("journal.jsonl", "metrics.csv"):
        assert files[f"{SESSION}/{name}"].endswith(b"\n")
    assert files[f"{SESSION}/log.txt"] == b""
    left = {path.split("/")[-1] for path in files}
    assert not left & {"alive.json", "lock", "x.py", ".session.json.1-ab.tmp"}
    assert not any(".tmp-" in path for path in files)


def test_without_checkpoints_all_else_comes(work: Work, tmp_path: Path) -> None:
    work.go(16)
    save_checkpoint(work.directory.checkpoints, 16, {"weights": np.ones(2)}, tag="best")
    work.sync().push()
    home(tmp_path).pull(checkpoints=False)
    pulled = SessionDir(tmp_path / "home" / SESSION)
    assert checkpoint_frames(pulled.checkpoints) == []
    assert load_checkpoint(pulled.checkpoints, tag="best") is not None
    assert last_row(pulled.metrics) == last_row(work.directory.metrics)


def test_a_session_that_is_further_here_is_left_as_it_is(work: Work, tmp_path: Path) -> None:
    work.go(16)
    work.sync().push()
    mine = Work(tmp_path / "home")
    mine.go(16)
    mine.go(32)
    before = {path: path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()}
    home(tmp_path).pull()
    assert {path: path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()} == before


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


def test_nothing_comes_that_would_leave_the_session_or_run(hub: Hub, work: Work, tmp_path: Path) -> None:
    work.go(16)
    work.sync().push()
    expected = short(set(hub.repo(NAME).files)) - {".gitattributes"}
    evil = {**hub.repo(NAME).files, **dict.fromkeys(HOSTILE, b"evil")}
    hub.repo(NAME).commit(evil, set())
    home(tmp_path).pull()
    came = {str(path.relative_to(tmp_path / "home" / SESSION)) for path in tmp_path.glob("home/**/*") if path.is_file()}
    assert came == expected
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("name", ["journal.jsonl", "provenance-2.json", "tree.diff", "checkpoints/best/state.json"])
def test_what_a_session_is_made_of_travels(name: str) -> None:
    assert travels(name)


def test_journals_of_two_places_become_one_whatever_their_clocks_say(tmp_path: Path) -> None:
    def write(name: str, *events: tuple[float, str]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps({"time": time, "event": event}) + "\n" for time, event in events))
        return path

    here = write("here", (10, "created"), (11, "submitted"))
    there = write("there", (2, "created"), (3, "started"), (9, "checkpoint"), (1, "started"), (20, "done"))
    result = tmp_path / "journal.jsonl"
    result.write_bytes(merged(here, there))
    events = [event["event"] for event in read_journal(result)]
    assert [name for name in events if name != "submitted"] == ["created", "started", "checkpoint", "started", "done"]
    assert "submitted" in events
    assert fold(read_journal(result)).status == "done"
    assert merged(result, there) == result.read_bytes()
    assert merged(tmp_path / "none", there) == there.read_bytes()


def test_a_copy_is_whole_at_any_moment(work: Work, tmp_path: Path) -> None:
    """Checkpoints come and go as fast as they can while copies are made."""
    stop = threading.Event()

    def train() -> None:
        for frame in range(1, 10_000):
            if stop.is_set():
                return
            work.metrics.write({"frame": frame, "episode_return": 1.0})
            save_checkpoint(work.directory.checkpoints, frame, {"weights": np.full(9, float(frame))})

    work.go(0)
    thread = threading.Thread(target=train)
    thread.start()
    try:
        for number in range(40):
            stage = tmp_path / f"copy-{number}"
            snapshot(work.directory.path, stage)
            loaded, row = load_checkpoint(stage / "checkpoints"), last_row(stage / "metrics.csv")
            assert loaded is not None and not loaded.damaged
            assert row is not None and row["frame"] >= loaded.frame
    finally:
        stop.set()
        thread.join()


def test_a_token_is_found_nowhere(hub: Hub, work: Work, tmp_path: Path) -> None:
    work.go(16)
    work.sync().push()
    home(tmp_path).pull()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written and not [path for path in written if TOKEN.encode() in path.read_bytes()]
    assert not [body for body in hub.bodies if TOKEN.encode() in body]
