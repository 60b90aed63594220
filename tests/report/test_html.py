"""The interactive page: complete in one file, and usable in a real Chromium that has no network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rldsl.report.html import Section, html_table, page, save_page
from rldsl.report.panel import WALL_TIME, data_digest
from tests.browser import open_chromium
from tests.report.panels import X, cartpole, pendulum

TABLE = html_table(["algorithm", "score"], [["ppo <best>", "500"]], right=["score"])
SECTIONS = [Section("Classic", [cartpole(), pendulum()], TABLE), Section("Time", [cartpole(WALL_TIME)])]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page in Chromium, with `requests` and `errors` that were seen while it loaded."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    save_page(path, "Results & more", SECTIONS)
    with open_chromium() as chromium:
        tab = chromium.new_page(viewport={"width": 1200, "height": 900})
        tab.requests, tab.errors = [], []
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.on("console", lambda message: tab.errors.append(message.text))
        tab.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.goto(path.as_uri())
        tab.wait_for_selector("#panel-3 .scatterlayer .trace", state="attached")
        tab.path = path
        yield tab


def test_it_loads_itself_and_nothing_else(opened: Any) -> None:
    assert opened.requests == [opened.path.as_uri()]
    assert opened.errors == []


def test_every_line_band_and_target_is_drawn(opened: Any) -> None:
    assert opened.locator("#panel-1 .scatterlayer .trace").count() == 3 + 2 + 1  # lines, bands, the target
    names = opened.locator("#panel-1 .legendtext").all_text_contents()
    assert names == ["ppo", "a2c", "random", "target 80"]
    drawn = opened.evaluate("document.getElementById('panel-1').data.map(t => [t.name, t.x.length, t.y.at(-1)])")
    assert drawn[1] == ["ppo", len(X), 100]
    assert opened.locator("#panel-2 .legendtext").all_text_contents() == ["sac", "one <b>"]
    assert "wall time (minutes)" in opened.locator("#panel-3 .xtitle").text_content()
    assert opened.locator("h1").text_content() == "Results & more"
    assert opened.locator("td").all_text_contents() == ["ppo <best>", "500"]


def test_hovering_shows_the_values_of_all_lines(opened: Any) -> None:
    box = opened.locator("#panel-1 .nsewdrag").bounding_box()
    opened.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    shown = opened.wait_for_selector("#panel-1 .hoverlayer .legend").text_content()
    at = np.abs(X - 5e4).argmin()  # the middle lies between two points
    assert any(
        f"ppo : {X[i] / 1e3:.5g} ({X[i] / 1e3 - 10:.5g} to {X[i] / 1e3 + 10:.5g})" in shown for i in (at, at + 1)
    )
    assert "random : 22" in shown and "target" not in shown


def test_a_click_on_the_legend_hides_line_and_band(opened: Any) -> None:
    opened.locator("#panel-1 .legendtoggle").first.click()
    opened.wait_for_function("document.querySelectorAll('#panel-1 .scatterlayer .trace').length == 4")


def test_no_button_sends_data_away(opened: Any) -> None:
    titles = opened.locator(".modebar-btn").evaluate_all("buttons => buttons.map(b => b.dataset.title)")
    assert "Zoom" in titles
    assert not [title for title in titles if any(word in title for word in ("Share", "cloud", "Edit", "Plotly"))]


def test_plotly_is_included_once_and_the_text_is_the_same_each_time() -> None:
    text = page("Results", SECTIONS)
    assert text == page("Results", SECTIONS)
    assert text.count("<script>/**") + text.count("plotly.js v") <= 2 and 4_000_000 < len(text) < 5_500_000
    assert f"rldsl data {data_digest([panel for section in SECTIONS for panel in section.panels])}" in text
    assert len(page("Table", [Section("Classic", html=TABLE)])) < 5_000, "a page without panels needs no plotly"
