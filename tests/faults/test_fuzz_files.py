"""Fuzzing of the files of run directories, queues and the Hub."""

from __future__ import annotations

import json
import random
from pathlib import Path

from rldsl.hub.checksums import parse_checksums
from rldsl.hub.index import Index, IndexRow, read_index
from rldsl.hub.remote_paths import sort_out
from rldsl.launch.intents import late_intents, open_intents
from rldsl.launch.queues import Queues
from rldsl.report.run_result import result_of
from rldsl.search.history import History
from rldsl.search.leaderboard import leaderboard
from rldsl.search.schedule import decide, schedule_of
from rldsl.spec.session import Session
from rldsl.store.claim import is_held, read_heartbeat
from rldsl.store.metrics import MetricsReader, last_row, read_metrics
from rldsl.store.provenance import differences, read_provenance
from rldsl.store.search_dir import SearchDir
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState
from tests.faults.guard import guarded, write
from tests.faults.mutations import TEXTS, as_bytes, damaged, mutated
from tests.faults.test_fuzz_settings import EXPERIMENTS, FULL, run

SESSION = Session(experiment="cartpole/ppo", trial=EXPERIMENTS[0].base(), seed=1, target=EXPERIMENTS[0].target)
EVENTS = [
    {"time": 1.5, "event": "created"},
    {"time": 2.5, "event": "started", "frame": 0, "pid": 5, "host": "x", "device": "cpu"},
    {"time": 3.5, "event": "checkpoint", "frame": 100, "seconds": 1.0},
    {"time": 3.6, "event": "fallback", "reason": "damaged"},
    {"time": 4.5, "event": "failed", "frame": 200, "seconds": 2.0, "reason": "diverged"},
    {"time": 5.5, "event": "done", "frame": 300, "metrics": {"sha256": "0" * 64, "rows": 3}},
]
SEARCH_EVENTS = [
    {"event": "suggested", "trial": 0, "point": {"agent.lr": 0.001}, "id": "0" * 12},
    {"event": "started", "trial": 0, "rung": 0, "seeds": [1000000]},
    {"event": "finished", "trial": 0, "rung": 0, "values": {"1000000": 5.0}, "seconds": 3.0},
    {"event": "suggested", "trial": 1, "point": {"agent.lr": 0.01}, "id": "1" * 12},
    {"event": "started", "trial": 1, "rung": 0, "seeds": [1000000]},
    {"event": "failed", "trial": 1, "rung": 0, "reason": "diverged"},
    {"event": "retried", "trial": 1, "rung": 0},
]
PROVENANCE = {
    "command": ["python", "exp.py"],
    "cwd": "/home/x",
    "code": {"sha": "0" * 40, "dirty": True, "diff_sha256": None},
    "packages": {"torch": "2.0"},
    "hardware": {"cpu": "x", "gpus": []},
    "python": "3.11",
}
METRICS = b"frame,seconds,fps,episode_return,episode_return_ma\n" + b"".join(
    b"%d,%d.5,100.0,%d.25,20.0\n" % (frame, frame, frame) for frame in range(50, 500, 50)
)
RECORD = {
    "backend": "local",
    "job_id": "one/0",
    "sessions": [SESSION.id],
    "submission": "one",
    "experiment": "x",
    "launcher": {"kind": "local"},
    "directories": [SESSION.directory],
    "until": None,
    "search": "",
}
KEEPER = {
    "jobs.json": {"launcher": {"kind": "local"}, "jobs": [{}]},
    "keeper.json": {"host": "x", "pid": 5, "start_time": 1.0, "machine": "y"},
    "story.jsonl": ["0", None],
    "intent.json": {"backend": "local", "launcher": {"kind": "local"}, "search": "", "jobs": [[[], [], "x", None]]},
    "settled.json": {
        "backend": "local",
        "launcher": {},
        "search": "",
        "jobs": [[[], [], "x", 1]],
        "found": {},
        "time": 1,
    },
}
ROW = IndexRow(
    "a/ppo-0123456789ab/seed-0", "x", "a", "ppo", "done", 5, 5, 1.0, None, 1.0, 9, "0" * 64, ("session.json",)
)


def lines(stream: random.Random, events: list[dict]) -> bytes:
    """A journal with some events changed, repeated, missing or damaged."""
    chosen = [stream.choice(events) if stream.random() < 0.2 else one for one in events if stream.random() < 0.9]
    made = [as_bytes(stream, one) if stream.random() < 0.4 else json.dumps(one).encode() for one in chosen]
    return b"\n".join(made) + stream.choice((b"\n", b"", b"\n\xff\n"))


def test_sessions(tmp_path: Path) -> None:
    """Records, journals, metrics, heartbeats and provenance of one session, as commands read them."""
    session = SessionDir(tmp_path / SESSION.directory)
    record_data = SESSION.record()

    def records(stream: random.Random) -> None:
        data = as_bytes(stream, record_data)
        write(session.session, data)
        with guarded(data[:3000], tmp_path):
            state = session.read_state(session.recorded())
            assert "\x1b" not in state.note and "\n" not in state.note
            Session.from_record(session.read_session(), session.path)

    def journals(stream: random.Random) -> None:
        data = lines(stream, EVENTS)
        write(session.journal.path, data)
        with guarded(data[:3000], tmp_path):
            state = session.read_state(session.recorded())
            assert "\x1b" not in state.note
            json.dumps(state.data())

    def metrics(stream: random.Random) -> None:
        data = damaged(stream, METRICS)
        write(session.metrics, data)
        with guarded(data[:3000]):
            reader = MetricsReader(session.metrics)
            assert all("frame" in row for row in reader.read_new())
            assert len({len(column) for column in read_metrics(session.metrics).values()}) <= 1
            SessionState().with_log_point(last_row(session.metrics) or {})

    def others(stream: random.Random) -> None:
        write(session.path / "provenance.json", as_bytes(stream, PROVENANCE))
        write(session.alive, as_bytes(stream, {"host": "x", "pid": 5, "start_time": 1.0, "machine": None, "time": 5.0}))
        with guarded("provenance and heartbeat", tmp_path):
            differences(read_provenance(session.path / "provenance.json"), PROVENANCE)
            is_held(session.alive)
            read_heartbeat(session.alive)

    run("session records", records)
    write(session.session, json.dumps(record_data).encode())
    run("journals", journals)
    run("metrics", metrics)
    run("provenance and heartbeats", others, short=SHORT_FILES, full=FULL // 2)
    write(session.journal.path, b"")
    with guarded("a report", tmp_path):
        result_of([session])


SHORT_FILES = 40


def test_searches(tmp_path: Path) -> None:
    searched = EXPERIMENTS[2]
    directory = SearchDir.of(tmp_path, searched.name, "0" * 12)
    schedule = schedule_of(searched)
    search = {"schema": 2, "experiment": searched.data(), "overrides": []}

    def journals(stream: random.Random) -> None:
        data = lines(stream, SEARCH_EVENTS)
        write(directory.path / "journal.jsonl", data)
        with guarded(data[:3000]):
            history = History.of(SearchDir(directory.path).events())
            decide(history, schedule)
            leaderboard(history, searched)

    def records(stream: random.Random) -> None:
        write(directory.path / "search.json", as_bytes(stream, search))
        with guarded("search.json"):
            directory.experiment()
            directory.overrides()

    run("search journals", journals, short=SHORT_FILES)
    run("search records", records, short=SHORT_FILES, full=FULL // 2)


def test_tickets(tmp_path: Path) -> None:
    """Job records, the files of a supervisor, and intents."""

    def tickets(stream: random.Random) -> None:
        data = lines(stream, [RECORD, RECORD, {"stopped": [["one", "one/0"]]}])
        write(tmp_path / ".jobs" / "tickets.jsonl", data)
        for name, content in KEEPER.items():
            write(tmp_path / ".jobs" / "one" / name, as_bytes(stream, content) + b"\n")
        with guarded(data[:3000]):
            queues = Queues(tmp_path)
            queues.jobs([SESSION.id])
            for one in queues.records.values():
                assert one.folder(tmp_path).resolve().is_relative_to(tmp_path)
            open_intents(tmp_path)
            late_intents(tmp_path)

    run("tickets", tickets, short=SHORT_FILES)


def test_hub_listings() -> None:
    index = Index({ROW.directory: ROW}).data()

    def listings(stream: random.Random) -> None:
        rows = [json.loads(line) for line in index.splitlines()]
        data = b"\n".join(as_bytes(stream, row) if stream.random() < 0.7 else json.dumps(row).encode() for row in rows)
        names = [
            stream.choice((ROW.directory, *TEXTS)) + "/" + stream.choice(("session.json", *TEXTS)) for _ in range(5)
        ]
        with guarded((data[:2000], names)):
            accepted, refused = sort_out(names)
            assert len(accepted) + len(refused) == len(set(names)) or len(accepted) + len(refused) == len(names)
            assert all(".." not in name.split("/") and not name.startswith("/") for name in accepted)
            parse_checksums(data.decode("utf-8", "replace"))
            for row in read_index(data, "x").rows.values():
                sort_out(row.paths)

    run("Hub listings", listings)


def test_mutations_reach_everything() -> None:
    """The generator itself: it changes documents, and every kind of value occurs."""
    stream = random.Random(0)
    made = [mutated(stream, {"a": [1, {"b": "x"}]}) for _ in range(500)]
    assert len({repr(one) for one in made}) > 300
