from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldsl.store.journal import Garbage, Journal, JournalReader, fold, read_journal
from rldsl.store.session_state import SessionState

TWO_LIVES = [
    {"time": 100.0, "event": "created"},
    {"time": 200.0, "event": "started", "frame": 0},
    {"time": 230.0, "event": "checkpoint", "frame": 5000},
    {"time": 500.0, "event": "started", "frame": 5000},
    {"time": 505.0, "event": "tea"},
    {"time": 510.0, "event": "done", "frame": 9000},
]


def test_append_then_read(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append("created")
    journal.append("started", host="h", pid=3, frame=0)
    created, started = read_journal(journal.path)
    assert created["event"] == "created"
    assert round(created["time"], 3) == created["time"]
    assert {**started, "time": 0} == {"time": 0, "event": "started", "host": "h", "pid": 3, "frame": 0}


def test_no_journal_is_no_events(tmp_path):
    assert read_journal(tmp_path / "none") == []
    assert fold([]) == SessionState()


def test_fold_adds_up_lives():
    state = fold(TWO_LIVES)
    assert (state.status, state.last_event, state.attempts, state.frame, state.checkpoint_frame) == (
        "done",
        "done",
        2,
        9000,
        5000,
    )
    assert state.seconds == 30 + 10  # the first life was killed: it counts up to its checkpoint
    assert (state.first_time, state.last_time) == (100.0, 510.0)


def test_a_life_may_say_its_own_seconds():
    assert fold([*TWO_LIVES[:-1], {"time": 510.0, "event": "done", "frame": 9000, "seconds": 7.5}]).seconds == 37.5


def test_a_restart_from_an_earlier_checkpoint_sets_the_frame_back():
    state = fold([*TWO_LIVES[:3], {"time": 240, "event": "stopped", "frame": 6000, "reason": "time limit"}])
    assert (state.status, state.frame, state.reason, state.seconds) == ("stopped", 6000, "time limit", 40)
    state = fold([TWO_LIVES[3]], state)
    assert (state.status, state.frame, state.reason, state.attempts) == ("started", 5000, None, 2)


def test_failure_keeps_its_reason():
    state = fold([*TWO_LIVES[:2], {"time": 201, "event": "failed", "frame": 3, "reason": "nan"}])
    assert (state.status, state.reason) == ("failed", "nan")


def test_waiting_between_lives_is_not_work():
    events = [
        *TWO_LIVES[:2],
        {"time": 210, "event": "stopped", "frame": 1},
        {"time": 999, "event": "checkpoint", "frame": 1},
    ]
    assert fold(events).seconds == 10


@pytest.mark.parametrize("line", ["{", "[1]", '"x"', "{}", '{"event": 3}', "\ufffd", "", "[" * 100_000])
def test_garbage_is_kept_and_counted(tmp_path, line):
    path = tmp_path / "journal.jsonl"
    path.write_text(f'{{"event": "created"}}\n{line}\n{{"event": "started"}}\n')
    events = read_journal(path)
    assert events[1] == Garbage(line)
    assert (fold(events).unreadable, fold(events).status) == (1, "started")


def test_facts_of_a_wrong_type_are_ignored():
    odd = [
        {"event": "started", "time": "noon", "frame": "many"},
        {"event": "done", "time": None, "frame": True, "seconds": float("nan")},
    ]
    assert (fold(odd).status, fold(odd).last_event, fold(odd).attempts, fold(odd).frame) == ("done", "done", 1, 0)
    assert fold(odd).seconds == 0
    huge = [
        {"event": "started", "time": 10**400, "frame": float("inf")},
        {"event": "done", "time": 1.0, "frame": 10**400},
    ]
    assert (fold(huge).status, fold(huge).frame, fold(huge).seconds) == ("done", 0, 0)


@given(st.lists(st.integers(0, len(TWO_LIVES)), max_size=4))
def test_reading_in_pieces_is_reading_at_once(tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    reader = JournalReader(path)
    lines = [json.dumps(event) for event in TWO_LIVES]
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(lines)], strict=True):
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines[begin:end])
        reader.read_new()
    assert reader.state == fold(TWO_LIVES)


def test_a_reader_starts_over_with_a_new_journal(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in TWO_LIVES))
    reader = JournalReader(path)
    reader.read_new()
    path.write_text('{"event": "created"}\n')
    assert reader.read_new() == [{"event": "created"}]
    assert (reader.state.status, reader.state.attempts) == ("created", 0)


def test_a_session_that_is_paused_has_nothing_left_to_train_up_to_its_frame():
    state = fold([*TWO_LIVES[:3], {"time": 240, "event": "paused", "frame": 6000}])
    assert (state.state, state.frame, state.reason, state.seconds) == ("paused", 6000, None, 40)
    assert [state.reached(until) for until in (5000, 6000, 6001, None)] == [True, True, False, False]
    assert fold([TWO_LIVES[-1]], state).reached(None) and fold([TWO_LIVES[-1]], state).reached(6001)
    assert not fold([TWO_LIVES[3]], state).reached(5000), "it runs again"
