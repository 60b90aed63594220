"""The rows of the session tree: grouped, folded, filtered, sorted."""

from __future__ import annotations

import pytest

from rldsl.monitor.filter import parse
from rldsl.monitor.session_index import SessionIndex
from rldsl.monitor.session_tree import FOLD_ABOVE, ORDERS, SessionTree, TreeRow, summarize
from tests.monitor.conftest import SampleRuns


def rows(sample: SampleRuns, tree: SessionTree) -> list[TreeRow]:
    index = SessionIndex(sample.runs)
    changes = index.refresh()
    assert not index.unread
    return tree.rows({session.path: session for session in changes.updated}, index.varied)


def labels_of(rows: list[TreeRow]) -> list[str]:
    return [f"{'  ' * row.depth}{row.label}" for row in rows]


def test_experiments_trials_and_sessions(sample: SampleRuns) -> None:
    labels = labels_of(rows(sample, SessionTree()))
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
    assert labels[:3] == ["cartpole/a2c", "  seed 0", "  seed 1"], "a single trial has no row of its own"


def test_folded_rows_hide_their_children(sample: SampleRuns) -> None:
    labels = labels_of(rows(sample, SessionTree(folded={"cartpole/clips": True, "cartpole/a2c": True})))
    assert "cartpole/clips" in labels
    assert "  clip=0.1" not in labels


def test_a_filter_keeps_only_matching_sessions(sample: SampleRuns) -> None:
    labels = labels_of(rows(sample, SessionTree(filter=parse("status:failed"))))
    assert labels == ["cartpole/a2c", "  seed 0"]


def test_filter_by_the_settings_that_differ(sample: SampleRuns) -> None:
    labels = labels_of(rows(sample, SessionTree(filter=parse("differs:clip=0.3"))))
    assert labels[0] == "cartpole/clips"
    assert "  clip=0.1" not in labels


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_keeps_all_rows_and_can_be_reversed(sample: SampleRuns, order: str) -> None:
    plain = rows(sample, SessionTree(order=order))
    reverse = rows(sample, SessionTree(order=order, reverse=True))
    assert sorted(labels_of(plain)) == sorted(labels_of(reverse))
    assert [row.label for row in plain if row.depth == 0] == [row.label for row in reverse if row.depth == 0][::-1]


def test_sorted_by_return_the_best_comes_first_at_every_level(sample: SampleRuns) -> None:
    ordered = rows(sample, SessionTree(order="return"))
    experiments = [row.summary.episode_return for row in ordered if row.depth == 0]
    assert experiments == sorted(experiments, reverse=True)
    labels = labels_of(ordered)
    assert labels.index("  clip=0.3") < labels.index("  clip=0.1")


def test_sorted_by_state_failures_come_first(sample: SampleRuns) -> None:
    experiments = [row for row in rows(sample, SessionTree(order="state")) if row.depth == 0]
    assert [row.summary.state for row in experiments][:2] == ["failed", "running"]


def test_seeds_are_sorted_as_numbers() -> None:
    unsorted = [TreeRow(name, name, 1, [], group=False) for name in ("seed 10", "seed 9", "seed 100")]
    assert [row.label for row in sorted(unsorted, key=ORDERS["name"])] == ["seed 9", "seed 10", "seed 100"]


def test_the_summary_of_a_group(sample: SampleRuns) -> None:
    index = SessionIndex(sample.runs)
    sessions = [session for session in index.refresh().updated if session.status.experiment == "cartpole/clips"]
    summary = summarize(sessions)
    assert summary.states == {"done": 4}
    assert summary.episode_return == pytest.approx((300 + 340 + 460 + 480) / 4)
    assert (summary.frame, summary.frames, summary.progress, summary.target) == (400_000, 400_000, 1.0, 450)


def test_many_sessions_start_folded(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldsl.monitor.session_tree.FOLD_ABOVE", 3)
    assert FOLD_ABOVE > 3
    labels = labels_of(rows(sample, SessionTree()))
    assert "cartpole/clips" in labels
    assert "    seed 0" not in labels
