"""`plot`: from experiment files, run directories, ids and plans; into files and the terminal."""

from __future__ import annotations

import re

import pytest

from rldsl.report.figures import digest_in
from tests.cli.conftest import OVERRIDES, Trained

WROTE = "wrote {}: 1 plot, {}\n"


@pytest.mark.parametrize(
    ("name", "beginning"), [("curve.png", b"\x89PNG"), ("curve.svg", b"<?xml"), ("curve.html", b"<!DOCTYPE html>")]
)
def test_the_suffix_chooses_the_format(trained: Trained, name: str, beginning: bytes) -> None:
    ran = trained.project.python("exp.py", "plot", *OVERRIDES, "--out", f"plots/{name}")
    assert (ran.stdout, ran.stderr) == (WROTE.format(f"plots/{name}", "1 line"), "")
    data = (trained.project.root / "plots" / name).read_bytes()
    assert data.startswith(beginning) and (b"rldsl data " in data)


def test_files_run_directories_plans_and_ids_give_the_same_plot(trained: Trained) -> None:
    project = trained.project
    assert project.python("exp.py", "plan", *OVERRIDES, "--out", "plan.json").returncode == 0
    trial = project.sessions[0].parent.name.rpartition("-")[2]
    digests = set()
    for number, source in enumerate([("exp.py", *OVERRIDES), ("runs",), ("plan.json",), (trial,), (trial[:6], "runs")]):
        ran = project.rldsl("plot", *source, "--out", f"{number}.png")
        assert ran.stdout == WROTE.format(f"{number}.png", "1 line"), ran.stderr
        digests.add(digest_in(project.root / f"{number}.png"))
    assert len(digests) == 1 and None not in digests
    one = project.rldsl("plot", f"{trial}-s1", "--out", "one.png")
    assert one.stdout == WROTE.format("one.png", "1 line")
    assert digest_in(project.root / "one.png") not in digests


def test_without_out_it_is_drawn_in_the_terminal(trained: Trained) -> None:
    shown = trained.project.rldsl("plot", "runs", "--smooth", "3", "--stat", "seeds", "--x", "wall-time").stdout
    assert "CartPole-v1  episode_return by wall time, each seed, smoothed: mean of 3 log points" in shown
    assert re.search("[\u2801-\u28ff]", shown) and "━━ random seed 1" in shown and "╌╌ target 400" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["runs", "--metric", "lenght"], "no session logs the metric lenght; did you mean length?"),
        (["runs", "--x", "seconds"], "--x seconds: valid: frames, wall-time, updates"),
        (["runs", "--stat", "max"], "--stat max: valid: mean, median, seeds"),
        (["runs", "--out", "curve.pdf"], "--out curve.pdf: a plot is written as .png, .svg or .html"),
        (["runs", "--only", "cartpole/rndom"], "--only cartpole/rndom: there is no such experiment; did you mean "),
        (["runs", "--frames", "2e3"], "--frames selects sessions of an experiment file, and none was given"),
        (["exp.py"], "no session of exp.py has been started in runs"),
        (["zzz"], "no session in runs matches 'zzz'"),
        (["."], ". contains neither sessions nor results"),
        (["runs", "--x", "updates", "--metric", "episode_return"], None),
    ],
)
def test_mistakes_are_a_sentence(trained: Trained, arguments: list[str], sentence: str | None) -> None:
    ran = trained.project.rldsl("plot", *arguments)
    assert ran.returncode == (2 if sentence else 0), ran.stderr
    assert ran.stderr.startswith(f"error: {sentence}" if sentence else "") and "Traceback" not in ran.stderr
