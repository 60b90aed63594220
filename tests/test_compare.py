"""The speed benchmark's own arithmetic: medians, ratios, goals, turns; the trainings themselves are `make bench`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import compare, optuna_search, ours, peers, turns


def run(side: str, fps: float, work: str = "ppo-cartpole") -> compare.Run:
    return compare.Run(side, work, frames=1000, seconds=1000 / fps, mean_return=None)


def test_the_median_is_over_the_rounds_of_one_side() -> None:
    runs = [run("rldsl", 100), run("rldsl", 300), run("rldsl", 200), run("sb3", 7)]
    assert compare.median_fps(runs, "ppo-cartpole", "rldsl") == pytest.approx(200)
    assert compare.median_fps(runs, "ppo-cartpole", "sbx") is None


def test_a_row_for_each_peer_and_none_for_what_was_not_run() -> None:
    made = compare.rows([run("rldsl", 50), run("sb3", 10)], ["ppo-cartpole", "a2c-cartpole"])
    assert [(row.work, row.peer) for row in made] == [("ppo-cartpole", "sb3"), ("ppo-cartpole", "sbx")]
    assert made[0].ratio == pytest.approx(5) and made[1].ratio is None and made[1].passed is False


@pytest.mark.parametrize(("ours", "goal", "passed"), [(50.0, 5.0, True), (49.9, 5.0, False), (1.0, None, None)])
def test_a_goal_is_met_or_missed(ours: float, goal: float | None, passed: bool | None) -> None:
    assert compare.Row("w", "sb3", ours, 10.0, goal).passed is passed


def test_the_table_says_pass_and_fail() -> None:
    said = compare.table([compare.Row("w", "sb3", 60.0, 10.0, 5.0), compare.Row("w", "sbx", 30.0, 10.0, 5.0)])
    assert "pass" in said and "FAIL" in said


def test_a_peer_that_lacks_the_work_is_asked_once() -> None:
    asked: list[tuple[list[str], int]] = []

    def measure(sides: list[str], work: str, frames: int, seed: int) -> dict[str, compare.Run | compare.LacksWork]:
        asked.append((sides, seed))
        return {side: compare.LacksWork("it has none") if side == "sbx" else run(side, 10, work) for side in sides}

    runs, lacks = compare.rounds(measure, {"a2c-cartpole": 100}, 2)
    assert asked == [(["rldsl", "sb3", "sbx"], 0), (["rldsl", "sb3"], 1)]
    assert list(lacks.values()) == ["it has none"]
    assert [one.side for one in runs] == ["rldsl", "sb3"] * 2


def test_where_the_goal_is_just_reached_all_take_equally_long() -> None:
    assert [compare.frames_of(side, "dqn-cartpole", 80_000) for side in ("rldsl", "sb3", "sbx")] == [
        80_000,
        16_000,
        20_000,
    ]


def test_pauses_do_not_count() -> None:
    pauses = [(0.0, 2.0), (5.0, 6.0), (9.0, 12.0)]
    assert turns.active_seconds(1.0, 10.0, pauses) == pytest.approx(9 - 1 - 1 - 1)
    assert turns.active_seconds(3.0, 4.0, pauses) == 1.0


COUNT = """
import json, time
start = time.perf_counter()
steps = [start]
while len(steps) < 60:
    time.sleep(0.01)
    steps.append(time.perf_counter())
print(json.dumps(steps))
"""


def test_only_one_training_runs_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.1)
    both = [turns.Training.start([sys.executable, "-c", COUNT], tmp_path / name, os.environ) for name in ("a", "b")]
    turns.take_turns(both)
    steps = [json.loads(one.result().stdout) for one in both]
    for own, other in (steps, steps[::-1]):
        inside = [moment for moment in own[1:] if other[0] < moment < other[-1]]
        assert len(inside) > 10, "they did not take turns"
    for one, own in zip(both, steps, strict=True):
        awake = turns.active_seconds(own[0], own[-1], one.pauses)
        assert 0.5 < awake < own[-1] - own[0] - 0.2
    a, b = both
    asleep = 0.02  # a signal takes a moment to arrive
    assert not [step for step in steps[0] if any(s + asleep < step < u for s, u in a.pauses)]
    assert not [step for step in steps[1] if any(s + asleep < step < u for s, u in b.pauses)]


def test_trainings_end_with_whoever_started_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = turns.Training.start([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "one", os.environ)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(one, "resume", interrupted)
    with pytest.raises(KeyboardInterrupt):
        turns.take_turns([one])
    assert one.process.returncode == -signal.SIGKILL


def test_a_busy_machine_is_refused() -> None:
    compare.refuse_if_busy(0.5)
    with pytest.raises(compare.CannotMeasure):
        compare.refuse_if_busy(0.51)


def test_a_search_is_compared_with_searches() -> None:
    made = compare.rows([run("rldsl", 90, "search"), run("optuna", 10, "search")], ["search"])
    assert [(row.peer, row.ratio, row.passed) for row in made] == [("separate", None, False), ("optuna", 9.0, True)]
    assert compare.TRIALS == ours.TRIALS == optuna_search.TRIALS
    assert compare.frames_of("optuna", "ppo-cartpole", 100) == 100


def test_the_tables_of_works_agree() -> None:
    assert {work for work, _ in compare.GOALS} <= compare.FRAMES.keys()
    assert compare.FRAMES.keys() - {"four-seeds", "search"} == peers.WORKS.keys()
