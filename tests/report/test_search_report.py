"""The report of a search: frames saved, rungs, the Pareto front, importance, and the files that it writes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from rldsl import PPO, SAC, choice, log_uniform, logit_uniform, when, zipped
from rldsl.report import search_figures
from rldsl.report.search_figures import write_figures
from rldsl.report.search_html import write_html
from rldsl.report.search_report import SearchReport, pareto_front, search_report
from rldsl.report.search_words import sentences
from rldsl.search.history import History
from rldsl.search.leaderboard import RankedTrial
from tests.browser import open_chromium
from tests.search.recorded import AXES, CARTPOLE, Value, asha, linear, record


def report(trials: int = 27, fails: tuple[int, ...] = (), value: Value = linear) -> SearchReport:
    searched = asha(trials)
    return search_report(searched, History.of(record(searched, value, fails)))


def trial(number: int, value: float | None, seconds: float) -> RankedTrial:
    return RankedTrial(number, "", {}, 0, 0, 1, value, "done", seconds, None)


def test_frames_are_those_of_the_rungs_that_trials_have_reached() -> None:
    made = report(27)
    reached = [rung.reached for rung in made.rungs]
    assert reached[0] == 27 and 27 // 3 <= reached[1] < 27 and reached[2] >= reached[1] // 3 >= 1
    stopped = [27 - reached[1], reached[1] - reached[2], reached[2]]
    assert made.frames == sum(n * frames for n, frames in zip(stopped, (10_000, 30_000, 90_000), strict=True))
    assert made.frames_unstopped == 27 * 90_000
    assert made.saved == 1 - made.frames / made.frames_unstopped and made.saved > 0.5
    assert [rung.promoted for rung in made.rungs] == [reached[1], reached[2], 0]


def test_seeds_of_a_rung_train_from_the_beginning() -> None:
    searched = CARTPOLE.search(**AXES).asha(trials=6, grace=1e4, seeds=(1, 2)).build()
    made = search_report(searched, History.of(record(searched)))
    assert [rung.seeds for rung in made.rungs] == [1, 2, 2]
    counts = [rung.reached for rung in made.rungs]
    expected = (counts[0] - counts[1]) * 10_000 + (counts[1] - counts[2]) * 2 * 30_000 + counts[2] * 2 * 90_000
    assert made.frames == expected and made.frames_unstopped == 6 * 2 * 90_000


def test_the_front_has_no_trial_that_another_beats_in_both() -> None:
    rows = [trial(0, 10.0, 5.0), trial(1, 12.0, 9.0), trial(2, 9.0, 6.0), trial(3, 12.0, 8.0), trial(4, None, 1.0)]
    assert [row.number for row in pareto_front(rows)] == [0, 3]
    assert [row.number for row in pareto_front(rows, maximize=False)] == [0, 2]
    assert pareto_front([replace(rows[0], state="failed")]) == []


def test_the_axis_that_decides_is_the_most_important() -> None:
    made = report(40)
    assert made.importance is not None and made.importance.trials == 40
    assert next(iter(made.importance.axes)) == "gamma"
    assert any("a rough guide" in one and "ranks of 40 trials" in one for one in sentences(made))
    assert any("not estimated, it takes 10 trials" in one for one in sentences(report(6)))


def test_the_best_settings_come_first_and_say_that_they_were_chosen() -> None:
    first, *_ = sentences(report(12))
    assert first.startswith("Best value") and "gamma = 0.9" in first and "expect less" in first
    assert next(iter(sentences(report(3, fails=(0, 1, 2))))) == "No trial has a value yet."


def test_positions_are_on_the_scale_of_the_axis_and_inactive_axes_have_none() -> None:
    search = CARTPOLE.search(
        when("agent", "sac", tau=log_uniform(1e-3, 1e-1)),
        when("agent", "ppo", zipped(clip=choice(0.1, 0.2), entropy=choice(0.0, 0.01)), lam=logit_uniform(0.9, 0.99)),
        agent=choice(PPO(), SAC()),
    ).random(trials=20)
    history = History.of(record(search.build(), lambda point, frames, seed: 1.0))
    columns = {column.label: column for column in search_report(search.build(), history).columns}
    assert list(columns) == ["tau (sac)", "clip, entropy (ppo)", "lam (ppo)", "agent"]
    for one in history.trials:
        sac = one.point["agent"]["kind"] == "sac"
        assert (one.number in columns["tau (sac)"].positions) == sac
        assert (one.number in columns["lam (ppo)"].positions) == (not sac)
        assert columns["agent"].positions[one.number] == float(sac)
        if sac:
            assert columns["tau (sac)"].positions[one.number] == math.log(one.point["agent.tau"])
    assert list(columns["tau (sac)"].ticks.values())[::2] == ["0.001", "0.01", "0.1"]
    assert list(columns["agent"].ticks.values()) == ["ppo", "sac"]


def test_files_are_written_and_deterministic(tmp_path: Path) -> None:
    made = report(40, fails=(5,))
    first, again = (write_figures(made, tmp_path, name) for name in ("a", "b"))
    assert [path.name for path in first] == ["a-parallel.png", "a-rungs.png", "a-importance.png", "a-pareto.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert json.loads(json.dumps(made.data())) == made.data()
    few = write_figures(report(2), tmp_path, "a")
    assert [path.name for path in few] == [
        "a-parallel.png",
        "a-rungs.png",
        "a-pareto.png",
    ]
    assert not (tmp_path / "a-importance.png").exists()
    empty = search_report(asha(3), History())
    assert write_figures(empty, tmp_path, "empty") == []
    write_html(empty, tmp_path / "empty.html")


@pytest.mark.parametrize("conditional", [False, True])
def test_the_page_shows_its_figures_without_the_network(tmp_path: Path, conditional: bool) -> None:
    searched = asha(40)
    if conditional:
        search = CARTPOLE.search(when("agent", "sac", tau=log_uniform(1e-3, 1e-1)), agent=choice(PPO(), SAC()))
        searched = search.asha(trials=20, grace=1e4).build()
    value: Value = (lambda point, frames, seed: 1.0 + frames) if conditional else linear
    write_html(search_report(searched, History.of(record(searched, value))), tmp_path / "search.html")
    with open_chromium() as chromium:
        page = chromium.new_page()
        requests: list[str] = []
        problems: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((tmp_path / "search.html").as_uri())
        page.wait_for_selector("#parallel-coordinates .parcoords", state="attached")
        titles = page.locator("h2").all_inner_texts()
        axes = page.locator(".axis-title").all_text_contents()  # SVG has no inner text
        rows = page.locator("table tr").count()
    assert not problems
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert titles[:2] == ["Parallel coordinates", "Rungs"] and titles[-1] == "Trials"
    assert axes == (["tau (sac)", "agent", "value"] if conditional else ["gamma", "lr", "value"])
    assert rows == 1 + (20 if conditional else 40)


def test_the_ticks_of_the_pareto_front_differ() -> None:
    axes = Figure().add_subplot()
    made = report(12)
    shortened = replace(made, rows=[replace(row, seconds=row.seconds / 30) for row in made.rows])
    search_figures._pareto(shortened, axes)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) > 3 and len(set(labels)) == len(labels)
