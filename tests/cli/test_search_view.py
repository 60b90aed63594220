"""The leaderboard in the terminal: it fits, and values are never cut."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rldsl import PPO, SAC, choice, int_uniform, log_uniform, uniform, when
from rldsl.cli import search_report, search_view
from rldsl.cli.search_view import LiveLeaderboard, SearchLines, leaderboard_table, show_leaderboard
from rldsl.search.history import History
from rldsl.search.leaderboard import leaderboard
from rldsl.spec.experiment import Experiment
from tests.search.recorded import CARTPOLE, asha, record


def rendered(searched: Experiment, width: int, **options: Any) -> list[str]:
    rows = leaderboard(History.of(record(searched, **options)), searched)
    out = Console(file=io.StringIO(), width=width)
    out.print(leaderboard_table(rows, searched, width))
    return out.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_the_table_has_the_columns_that_matter() -> None:
    header, first, *_ = rendered(asha(12), 120)
    assert header.split() == ["trial", "value", "rung", "seeds", "state", "gamma", "lr"]
    assert first.split()[2:5] == ["2", "1", "done"]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_fits_and_values_are_never_cut(width: int) -> None:
    axes = {"gamma": uniform(0.9, 0.99), "lr": log_uniform(1e-6, 1e-2), "epochs": int_uniform(2, 4)}
    axes |= {name: uniform(0.1, 0.9) for name in ("entropy", "lam", "value_coef", "clip", "max_grad_norm")}
    searched = CARTPOLE.search(**axes).asha(trials=12, grace=1e4).build()
    lines = rendered(searched, width, value=lambda point, frames, seed: -1234567.8 - frames)
    assert all(len(line.rstrip()) <= width for line in lines)
    assert all("-13" in line or "-12" in line for line in lines[1:]) and not any("…" in line for line in lines)
    assert "-1244567.8" in "".join(lines)


def test_a_running_trial_shows_both_rungs_and_a_method_without_rungs_has_no_column() -> None:
    searched = asha(12)
    journal = record(searched)
    promoted = next(n for n, event in enumerate(journal) if event["event"] == "started" and event["rung"] == 1)
    assert any("0>1" in line for line in rendered(searched, 80, most=promoted + 1))
    assert "rung" not in rendered(CARTPOLE.search(gamma=uniform(0.9, 0.99)).random(2).build(), 80)[0]


def test_axes_that_a_trial_does_not_have_are_blank() -> None:
    search = CARTPOLE.search(
        when("agent", "sac", tau=log_uniform(1e-3, 1e-1)),
        when("agent", "ppo", lam=uniform(0.9, 0.99)),
        agent=choice(PPO(), SAC()),
    ).random(trials=8)
    header, *lines = rendered(search.build(), 100, value=lambda point, frames, seed: 1.0)
    assert {"agent", "tau", "lam"} < set(header.split())
    assert any(" sac" in line for line in lines) and all(len(line.split()) == 6 for line in lines)


def test_lines_name_each_result_and_each_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    searched = asha(6)
    search_view.console.cache_clear()
    lines, history = SearchLines(searched), History()
    for event in record(searched, fails=(1, 2)):
        history = history.after(event)
        lines.journalled(event, history)
    shown = capsys.readouterr().out.splitlines()
    assert sum("at 10k frames" in line for line in shown) == 4
    assert sum("diverged" in line for line in shown) == 1 and sum("as trial 1" in line for line in shown) == 1
    show_leaderboard(history, searched, shown=3)
    shown = capsys.readouterr().out.splitlines()
    assert "6 trials" in shown[0] and "2 failed" in shown[0] and "3 trials more" in shown[-1]
    show_leaderboard(history, searched, shown=None)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2 + 6 and not any("more" in line for line in shown)


def test_a_report_shows_all_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    searched = asha(12)
    search_view.console.cache_clear()
    search_report._report(searched, History.of(record(searched)), tmp_path, "found")
    shown = capsys.readouterr().out.splitlines()
    assert {int(line.split()[0]) for line in shown[2:14]} == set(range(12))
    assert not any("shows all of them" in line for line in shown)


def test_the_live_leaderboard_is_drawn_while_a_search_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, highlight=False, no_color=True)
    monkeypatch.setattr(search_view, "console", lambda: out)
    searched, history = asha(30), History()
    with LiveLeaderboard(searched) as live:
        for event in record(searched, fails=(1,)):
            history = history.after(event)
            live.journalled(event, history)
            live.progress(history, [])
        live._live.refresh()
        drawn = out.file.getvalue()  # type: ignore[attr-defined]
    assert "30 trials: " in drawn and "1 failed" in drawn and " done " in drawn
    assert drawn.count("diverged") == 1
    plain = Console(file=io.StringIO(), width=80, height=24)
    plain.print(live._render())
    lines = plain.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert 10 < len(lines) < 24 and all(len(line.rstrip()) <= 80 for line in lines)
