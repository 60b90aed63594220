"""The command `diff`: what differs between two sessions."""

from __future__ import annotations

import json
from pathlib import Path

from rldsl.cli.tables import echo, escape, table
from rldsl.report.difference import session_differences
from rldsl.report.words import value
from rldsl.store.runs import Runs


def show_diff(a: str, b: str, runs: Path, as_json: bool) -> None:
    """Prints a line for each difference: its name, and the values in both sessions."""
    first, second = Runs(runs).find(a), Runs(runs).find(b)
    differences = session_differences(first, second)
    if as_json:
        print(json.dumps([one._asdict() for one in differences], indent=2))  # noqa: T201
        return
    if not differences:
        echo(f"{first.id} and {second.id} do not differ")
        return
    rows = [[one.of, one.name, escape(value(one.a)), escape(value(one.b))] for one in differences]
    table(["of", "name", first.id, second.id], rows)
