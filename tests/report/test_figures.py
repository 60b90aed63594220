"""Figures: the same bytes each time, every line drawn in its colour, and nothing of the user's settings."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from rldsl.report.figures import digest_in, figure_bytes, make_figure, save_figure
from rldsl.report.panel import COLORS, WALL_TIME, Line, Panel, colors_of, data_digest
from rldsl.spec.errors import SpecError
from tests.report.panels import X, cartpole, line, pendulum

AGAIN = """
import sys
from pathlib import Path
from rldsl.report.figures import save_figure
from tests.report.panels import cartpole, pendulum
for name in sys.argv[1:]:
    save_figure([cartpole(), pendulum()], Path(name))
"""


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    names = [tmp_path / "again.png", tmp_path / "again.svg"]
    subprocess.run([sys.executable, "-c", AGAIN, *names], check=True, cwd=Path(__file__).parents[2])
    for name in names:
        assert name.read_bytes() == figure_bytes([cartpole(), pendulum()], name.suffix[1:])


@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_user_s_settings_are_neither_used_nor_changed(format: str) -> None:
    before = figure_bytes([cartpole()], format)
    with matplotlib.rc_context({"lines.linewidth": 9, "svg.hashsalt": "mine", "axes.facecolor": "black"}):
        mine = dict(matplotlib.rcParams)
        assert figure_bytes([cartpole()], format) == before
        assert dict(matplotlib.rcParams) == mine
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_the_svg_has_no_date_and_needs_no_font() -> None:
    text = figure_bytes([cartpole()], "svg").decode()
    assert "dc:date" not in text and "<text" not in text
    assert text.count("http") == len(re.findall(r"http://(www\.w3\.org|purl\.org|creativecommons\.org)", text))


def test_every_line_is_drawn_in_its_colour(tmp_path: Path) -> None:
    save_figure([cartpole()], tmp_path / "figure.png")
    pixels = np.round(imread(tmp_path / "figure.png")[..., :3] * 255).astype(int)
    for index in (0, 3, 9):
        color = COLORS[index % len(COLORS)]
        rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
        assert (np.abs(pixels - rgb).max(axis=-1) < 4).sum() > 50, color
    svg = figure_bytes([cartpole()], "svg").decode()
    assert all(COLORS[index % len(COLORS)] in svg for index in (0, 3, 9)) and COLORS[1] not in svg


def test_axes_say_what_they_show() -> None:
    figure = make_figure([cartpole(), pendulum()])
    first, second = figure.axes
    figure.canvas.draw()
    assert first.get_title("left") == "CartPole-v1" and second.get_title("left") == "Pendulum-v1"
    assert (first.get_xlabel(), first.get_ylabel()) == ("frames", "episode_return")
    assert "100k" in [label.get_text() for label in first.get_xticklabels()]
    legend = first.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["ppo", "a2c", "random", "target 80"]
    assert legend.get_title().get_text() == "mean of 4 seeds\nband: lowest to highest seed"
    assert len(first.collections) == 2, "a band for each line that has one"
    legend_box, axes_box = legend.get_window_extent(), first.get_window_extent()
    assert legend_box.x0 >= axes_box.x1 - 1, "the legend covers no curve"


def test_wall_time_has_units() -> None:
    figure = make_figure([cartpole(WALL_TIME)])
    figure.canvas.draw()
    assert figure.axes[0].get_xlabel() == "wall time"
    assert any(re.fullmatch(r"\d+h \d\dm", label.get_text()) for label in figure.axes[0].get_xticklabels())


def test_the_ticks_of_a_short_wall_time_differ() -> None:
    seconds = np.linspace(0, 3.2, 20)
    figure = make_figure([Panel("CartPole-v1", [Line("ppo", seconds, seconds)], axis=WALL_TIME)])
    figure.canvas.draw()
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(labels) > 3 and len(set(labels)) == len(labels)


def test_an_empty_panel_is_drawn(tmp_path: Path) -> None:
    save_figure([Panel("nothing yet", [Line("ppo", np.empty(0), np.empty(0))])], tmp_path / "sub" / "figure.png")
    assert (tmp_path / "sub" / "figure.png").stat().st_size > 1000


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"\.png or \.svg, not as figure\.gif"):
        save_figure([cartpole()], tmp_path / "figure.gif")


@pytest.mark.parametrize("name", ["figure.png", "figure.svg"])
def test_a_figure_has_the_digest_of_its_data(tmp_path: Path, name: str) -> None:
    save_figure([cartpole()], tmp_path / name)
    assert digest_in(tmp_path / name) == data_digest([cartpole()])
    assert digest_in(tmp_path / "missing.png") is None
    (tmp_path / name).write_bytes(b"something else")
    assert digest_in(tmp_path / name) is None


def test_the_digest_depends_on_all_that_is_shown() -> None:
    panel = cartpole()
    y = panel.lines[0].y.copy()
    y[7] *= 1.001
    others = [
        replace(panel, title="x"),
        replace(panel, target=81.0),
        replace(panel, metric="length"),
        replace(panel, note=""),
        replace(panel, smoothing="mean of 10 log points"),
        replace(panel, lines=panel.lines[:2]),
        replace(panel, lines=[replace(panel.lines[0], y=y), *panel.lines[1:]]),
        replace(panel, lines=[replace(panel.lines[0], low=None), *panel.lines[1:]]),
    ]
    digests = {data_digest([one]) for one in [panel, *others]}
    assert len(digests) == 1 + len(others)
    assert data_digest([panel]) == data_digest([cartpole()])


def test_long_lines_are_thinned_and_keep_their_ends() -> None:
    x = np.arange(12_345.0)
    thin = Line("ppo", x, x, x - 1, x + 1, 2, 3).thinned(100)
    assert len(thin.x) == 100 and thin.x[0] == 0 and thin.x[-1] == 12_344
    assert thin.low is not None and (thin.low == thin.x - 1).all() and (thin.color, thin.seeds) == (2, 3)
    assert line("ppo", 0).thinned() is not None and len(line("ppo", 0).thinned().x) == len(X)


def test_an_algorithm_has_the_same_colour_everywhere() -> None:
    cartpole, hopper = colors_of(["cartpole/a2c", "cartpole/mine", "cartpole/ppo"]), colors_of(["hopper/ppo", "sac"])
    assert cartpole["cartpole/ppo"] == hopper["hopper/ppo"] == colors_of(["ppo"])["ppo"]
    assert len(set(cartpole.values())) == 3
    clips = colors_of([f"{at} cartpole/ppo" for at in range(9)])
    assert sorted(clips.values()) == list(range(9)), "trials of one algorithm are told apart"
