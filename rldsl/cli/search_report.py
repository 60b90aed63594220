"""The command `report` on searches: a summary in the terminal, and the files of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rldsl.cli.options import Choice
from rldsl.cli.search_view import show_leaderboard
from rldsl.cli.tables import echo, escape, note, table
from rldsl.report.search_figures import write_figures
from rldsl.report.search_html import write_html
from rldsl.report.search_report import SearchReport, search_report
from rldsl.report.search_words import sentences
from rldsl.report.words import amount, count
from rldsl.search.history import History
from rldsl.search.identity import search_id
from rldsl.search.stages import narrow_experiment
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.store.errors import StoreError, writing
from rldsl.store.files import replace_json
from rldsl.store.search_dir import SearchDir, search_dirs

FOLDER = Path("report")
"""Where the files are written without `--out`."""


def report_searches(choice: Choice, runs: Path, out: Path | None) -> bool:
    """Reports on the searches of an experiment file or run directory; returns whether there is nothing else in it."""
    only_searches = False
    if choice.file.is_dir():
        found = list(_readable(search_dirs(choice.file)))
    elif choice.file.suffix != ".py":
        return False
    else:
        experiments = [one.experiment for one in choice.experiments()]
        found = [search for one in experiments if one.sampled for search in _stages(one, runs)]
        only_searches = all(one.sampled for one in experiments)
    names = Counter(experiment.name for experiment, _ in found)
    for experiment, directory in found:
        file = experiment.name.replace("/", "-") if names[experiment.name] == 1 else directory.path.name
        _report(experiment, History.of(directory.events()), out or FOLDER, file)
    if only_searches and not found:
        echo("no search with these settings has been started yet: `search` runs it")
    return only_searches


def _readable(directories: Iterable[SearchDir]) -> Iterator[tuple[Experiment, SearchDir]]:
    for one in directories:
        try:
            yield one.experiment(), one
        except (SpecError, StoreError) as error:
            note(f"{one.path} is left out: {error}")


def _stages(experiment: Experiment, runs: Path) -> Iterator[tuple[Experiment, SearchDir]]:
    """The search of an experiment and its narrow stage, as far as they were started."""
    directory = SearchDir.of(runs, experiment.name, search_id(experiment))
    if not directory.exists():
        return
    yield experiment, directory
    if experiment.search is None or experiment.search.narrow is None:
        return
    try:
        narrow = narrow_experiment(experiment, History.of(directory.events()))
    except SpecError:  # no trial has a value yet
        return
    yield from _stages(narrow, runs)


def _report(experiment: Experiment, history: History, out: Path, file: str) -> None:
    """`file` is the name of its files without the ending; searches of one name have their id in it."""
    report = search_report(experiment, history)
    show_leaderboard(history, experiment, shown=None)
    if len(report.rungs) > 1:
        _show_rungs(report)
    for sentence in sentences(report):
        echo(escape(sentence))
    _write(report, out, file)


def _show_rungs(report: SearchReport) -> None:
    names = ["rung", "frames", "seeds", "reached", "promoted", "best", "median"]
    rows = [
        [
            str(rung.rung),
            amount(rung.frames),
            str(rung.seeds),
            str(rung.reached),
            str(rung.promoted) if rung.rung < len(report.rungs) - 1 else "",
            "-" if rung.best is None else f"{rung.best:.1f}",
            "-" if rung.median is None else f"{rung.median:.1f}",
        ]
        for rung in report.rungs
    ]
    table(names, rows, right=names)


def _write(report: SearchReport, out: Path, name: str) -> None:
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    figures = write_figures(report, out, name)
    write_html(report, out / f"{name}.html")
    replace_json(out / f"{name}.json", report.data())
    echo(f"wrote {escape(str(out / name))}.html, {name}.json and {count(len(figures), 'figure')}")
