"""`plot`: from experiment files, run directories, ids and plans; into files and the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from rldsl.cli.app import run_rldsl
from rldsl.report.figures import digest_in
from tests.cli.conftest import OVERRIDES, Trained

WROTE = "wrote {}: 1 plot, {}\n"


class Ran(NamedTuple):
    code: int
    stdout: str
    stderr: str


Plot = Callable[..., Ran]


@pytest.fixture
def plot(trained: Trained, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plot:
    """`rldsl plot ARGUMENTS` in the project, in this process: a new one takes a second to import its libraries."""
    monkeypatch.chdir(trained.project.root)
    (trained.project.root / "empty").mkdir(exist_ok=True)

    def run(*arguments: str) -> Ran:
        code = run_rldsl(["plot", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    ("name", "beginning"), [("curve.png", b"\x89PNG"), ("curve.svg", b"<?xml"), ("curve.html", b"<!DOCTYPE html>")]
)
def test_the_suffix_chooses_the_format(trained: Trained, plot: Plot, name: str, beginning: bytes) -> None:
    ran = plot("exp.py", *OVERRIDES, "--out", f"plots/{name}")
    assert ran == (0, WROTE.format(f"plots/{name}", "1 line"), "")
    data = (trained.project.root / "plots" / name).read_bytes()
    assert data.startswith(beginning) and (b"rldsl data " in data)


def test_files_run_directories_plans_and_ids_give_the_same_plot(trained: Trained, plot: Plot) -> None:
    project = trained.project
    assert project.python("exp.py", "plan", *OVERRIDES, "--out", "plan.json").returncode == 0
    trial = project.sessions[0].parent.name.rpartition("-")[2]
    digests = set()
    for number, source in enumerate([("exp.py", *OVERRIDES), ("runs",), ("plan.json",), (trial,), (trial[:6], "runs")]):
        ran = plot(*source, "--out", f"{number}.png")
        assert ran.stdout == WROTE.format(f"{number}.png", "1 line"), ran.stderr
        digests.add(digest_in(project.root / f"{number}.png"))
    assert len(digests) == 1 and None not in digests
    ran = project.python("exp.py", "plot", *OVERRIDES, "--out", "file.png")
    assert ran.stdout == WROTE.format("file.png", "1 line") and digest_in(project.root / "file.png") in digests
    one = plot(f"{trial}-s1", "--out", "one.png")
    assert one.stdout == WROTE.format("one.png", "1 line")
    assert digest_in(project.root / "one.png") not in digests


def test_without_out_it_is_drawn_in_the_terminal(plot: Plot) -> None:
    shown = plot("runs", "--smooth", "3", "--stat", "seeds", "--x", "wall-time").stdout
    assert "CartPole-v1  episode_return by wall time, each seed\n" in shown
    assert "smoothed: mean of 3 log points" in shown
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
        (["exp.py", "--frames", "5e3"], "no session of exp.py has been started in runs"),
        (["zzz"], "no session in runs matches 'zzz'"),
        (["empty"], "empty contains neither sessions nor results"),
        (["runs", "--x", "updates", "--metric", "episode_return"], None),
    ],
)
def test_mistakes_are_a_sentence(plot: Plot, arguments: list[str], sentence: str | None) -> None:
    ran = plot(*arguments)
    assert ran.code == (2 if sentence else 0), ran.stderr
    assert ran.stderr.startswith(f"error: {sentence}" if sentence else "") and "Traceback" not in ran.stderr
