"""The tree as lines: grouped, folded, filtered, sorted."""

from __future__ import annotations

import pytest

from rldsl.monitor.facts import Index
from rldsl.monitor.filter import parse
from rldsl.monitor.outline import MANY, ORDERS, Line, Outline, figures
from tests.monitor.conftest import House


def lines(house: House, outline: Outline) -> list[Line]:
    index = Index(house.runs)
    changes = index.look()
    assert not index.unread
    return outline.lines({one.path: one for one in changes.seen}, index.families)


def shown(found: list[Line]) -> list[str]:
    return [f"{'  ' * one.depth}{one.label}" for one in found]


def test_experiments_trials_and_seeds(house: House) -> None:
    labels = shown(lines(house, Outline()))
    at = labels.index("cartpole/clips")
    assert labels[at : at + 7] == [
        "cartpole/clips",
        "  clip=0.1",
        "    seed 0",
        "    seed 1",
        "  clip=0.3",
        "    seed 0",
        "    seed 1",
    ]
    assert labels[:3] == ["cartpole/a2c", "  seed 0", "  seed 1"], "a single trial needs no line of its own"


def test_what_is_folded_hides_what_is_below(house: House) -> None:
    labels = shown(lines(house, Outline(folded={"cartpole/clips": True, "cartpole/a2c": True})))
    assert "cartpole/clips" in labels
    assert "  clip=0.1" not in labels


def test_a_filter_keeps_only_what_matches(house: House) -> None:
    labels = shown(lines(house, Outline(filter=parse("status:failed"))))
    assert labels == ["cartpole/a2c", "  seed 0"]


def test_the_filter_sees_what_differs(house: House) -> None:
    labels = shown(lines(house, Outline(filter=parse("differs:clip=0.3"))))
    assert labels[0] == "cartpole/clips"
    assert "  clip=0.1" not in labels


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_all_lines_and_reverses(house: House, order: str) -> None:
    plain = lines(house, Outline(order=order))
    turned = lines(house, Outline(order=order, reverse=True))
    assert sorted(shown(plain)) == sorted(shown(turned))
    assert [one.label for one in plain if one.depth == 0] == [one.label for one in turned if one.depth == 0][::-1]


def test_by_return_the_best_comes_first_at_every_level(house: House) -> None:
    found = lines(house, Outline(order="return"))
    tops = [one.figures.episode_return for one in found if one.depth == 0]
    assert tops == sorted(tops, reverse=True)
    labels = shown(found)
    assert labels.index("  clip=0.3") < labels.index("  clip=0.1")


def test_by_state_what_needs_a_person_comes_first(house: House) -> None:
    found = [one for one in lines(house, Outline(order="state")) if one.depth == 0]
    assert [one.figures.state for one in found][:2] == ["failed", "running"]


def test_seeds_are_sorted_as_numbers(house: House) -> None:
    (key,) = {ORDERS["name"]}
    made = [Line(name, name, 1, [], group=False) for name in ("seed 10", "seed 9", "seed 100")]
    assert [one.label for one in sorted(made, key=key)] == ["seed 9", "seed 10", "seed 100"]


def test_a_group_sums_up_its_sessions(house: House) -> None:
    index = Index(house.runs)
    seen = [one for one in index.look().seen if one.status.experiment == "cartpole/clips"]
    found = figures(seen)
    assert found.states == {"done": 4}
    assert found.episode_return == pytest.approx((300 + 340 + 460 + 480) / 4)
    assert (found.frame, found.frames, found.progress, found.target) == (400_000, 400_000, 1.0, 450)


def test_many_sessions_start_folded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldsl.monitor.outline.MANY", 3)
    assert MANY > 3
    labels = shown(lines(house, Outline()))
    assert "cartpole/clips" in labels
    assert "    seed 0" not in labels
