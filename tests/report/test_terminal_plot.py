"""Panels in the terminal: where the dots are, and what axes, title and legend say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rldsl.report.panel import WALL_TIME, Line, Panel
from rldsl.report.terminal_plot import AXIS_WIDTH, COLORS, terminal_plot
from tests.report.panels import X, cartpole, line


def shown(panel: Panel, width: int = 40, height: int = 8) -> list[str]:
    return [text.plain for text in terminal_plot(panel, width, height)]


def test_a_line_rises_from_the_lower_left_to_the_upper_right() -> None:
    title, *rows = shown(Panel("CartPole-v1", [Line("ppo", X, X / 1e3)], note="mean of 4 seeds"))
    assert title == "CartPole-v1  episode_return by frames, mean of 4 seeds"
    drawn = [row[AXIS_WIDTH:] for row in rows[:8]]
    columns = [len(row) - len(row.lstrip()) for row in drawn]
    assert columns == sorted(columns, reverse=True) and columns[-1] == 0 and len(drawn[0]) == 40
    assert rows[8] == " " * 8 + "└" + "─" * 40
    assert rows[9].split() == ["0", "50k", "100k"]
    assert rows[10].strip() == "━━ ppo 100"
    ticks = [row.split("┤")[0].strip() for row in rows[:8] if "┤" in row]
    assert ticks == ["100", "50", "0"]


def test_colours_and_legend_tell_lines_apart() -> None:
    texts = terminal_plot(cartpole(), 60, 10)
    styles = {span.style for text in texts for span in text.spans}
    assert {COLORS[0], COLORS[3], COLORS[9 % len(COLORS)]} <= styles
    legend = " ".join(text.plain for text in texts[13:])
    assert legend.split("   ")[-1] == "╌╌ target 80"
    assert all(entry in legend for entry in ("━━ ppo 100", "━━ a2c 50", "╍╍ random 22"))
    assert sum("╌╌╌" in text.plain for text in texts[1:11]) == 1, "the target line"


def test_lines_with_one_label_have_one_entry() -> None:
    panel = Panel("CartPole-v1", [line("each seed of ppo", 0), line("each seed of ppo", 0, 0.5)])
    assert sum(row.count("each seed of ppo") for row in shown(panel)) == 1


def test_the_legend_is_not_wider_than_the_plot() -> None:
    panel = Panel("CartPole-v1", [line(f"experiment-{index}", index) for index in range(12)])
    assert max(map(len, shown(panel, width=66))) <= 66 + AXIS_WIDTH


def test_smoothing_and_wall_time_are_named() -> None:
    rows = shown(replace(cartpole(WALL_TIME), smoothing="smoothed: mean of 5 log points"))
    assert rows[0] == "CartPole-v1  episode_return by wall time, mean of 4 seeds"
    assert "h" in rows[10] and rows[-1].strip() == "smoothed: mean of 5 log points"


def test_nothing_to_draw_is_said() -> None:
    assert shown(Panel("CartPole-v1", [Line("ppo", np.empty(0), np.empty(0))], 450.0))[1:] == ["  no log point yet"]
    assert len(shown(Panel("CartPole-v1", [Line("ppo", np.array([5.0]), np.array([1.0]))]))) == 12
