"""The command `report`: scores as a table, and as files that can be committed."""

from __future__ import annotations

from pathlib import Path

from rldsl.cli.tables import echo, escape, table
from rldsl.report.outcome import Outcome
from rldsl.report.words import amount, count, duration, value
from rldsl.store.errors import writing
from rldsl.store.files import replace_json


def show_outcomes(outcomes: list[Outcome], out: Path | None) -> None:
    """Prints a line for each trial; writes a compact file of each to the folder `out`."""
    if not outcomes:
        echo("no session with these settings is done yet")
        return
    names = ["experiment", "differs", "n", "score", "95%", "seeds", "target", "frames", "time"]
    right = ("n", "score", "95%", "seeds", "target", "frames", "time")
    table(names, [_cells(one) for one in outcomes], right=right)
    echo(
        "[dim]score: mean over seeds of the last 100 log points, each the mean of the last 100 training episodes[/dim]"
    )
    echo("[dim]95%: Student's t interval of the score; n of 3 or more; assumes that scores are about normal[/dim]")
    for one in outcomes:
        if seeds := ", ".join(map(str, one.seeds_without_episode)):
            echo(f"{escape(one.row.experiment)} has no score: no episode ended with seed {seeds}")
    if out is not None:
        _write(outcomes, out)


def _cells(one: Outcome) -> list[str]:
    data = one.data()
    seconds = [run.seconds for run in one.runs]
    return [
        one.row.experiment,
        escape(", ".join(f"{path} = {value(set_to)}" for path, set_to in one.row.differs.items())),
        str(len(one.runs)),
        "-" if data["score"] is None else f"{data['score']:.1f}",
        "{:.1f} .. {:.1f}".format(*data["interval_95"]) if data["interval_95"] else "-",
        " ".join(f"{score:.1f}" for score in sorted(one.scores)),
        "" if data["target"] is None else f"{data['target']:g}",
        amount(data["frames"]),
        duration(sum(seconds) / len(seconds)),
    ]


def _write(outcomes: list[Outcome], out: Path) -> None:
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    for one in outcomes:
        name = one.row.experiment.replace("/", "-") + (f"-{one.row.id}" if one.row.differs else "")
        replace_json(out / f"{name}.json", one.data())
    echo(f"wrote {count(len(outcomes), 'file')} to {out}")
