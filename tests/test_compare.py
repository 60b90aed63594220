"""The speed benchmark's own arithmetic: medians, ratios, goals, turns; the trainings themselves are `make bench`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import compare, peers


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


def test_the_sides_take_turns_and_a_peer_that_lacks_the_work_is_asked_once() -> None:
    asked: list[tuple[str, int]] = []

    def measure(side: str, work: str, frames: int, seed: int) -> compare.Run:
        asked.append((side, seed))
        if side == "sbx":
            raise compare.LacksWork("it has none")
        return run(side, 10, work)

    _, lacks = compare.interleave(measure, {"a2c-cartpole": 100}, 2)
    assert asked == [("rldsl", 0), ("sb3", 0), ("sbx", 0), ("rldsl", 1), ("sb3", 1)]
    assert list(lacks.values()) == ["it has none"]


def test_a_busy_machine_is_refused() -> None:
    compare.refuse_if_busy(0.5)
    with pytest.raises(compare.CannotMeasure):
        compare.refuse_if_busy(0.51)


def test_the_tables_of_works_agree() -> None:
    assert {work for work, _ in compare.GOALS} <= compare.FRAMES.keys()
    assert compare.FRAMES.keys() - {"four-seeds"} == peers.WORKS.keys()
