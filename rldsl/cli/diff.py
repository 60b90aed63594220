"""What differs between two sessions: settings, code, packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rldsl.cli.tables import echo, escape, table
from rldsl.cli.words import value
from rldsl.spec.paths import differences
from rldsl.store.layout import provenance_name
from rldsl.store.provenance import differences as origin_differences
from rldsl.store.provenance import read_provenance
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir

SPEC = ("trial", "seed", "target")


def show_diff(a: str, b: str, runs: Path, as_json: bool) -> None:
    """Prints each difference in a line: what, in the one, in the other."""
    first, second = Runs(runs).find(a), Runs(runs).find(b)
    found = [*_settings(first, second), *_origin(first, second)]
    if as_json:
        print(json.dumps(found, indent=2))  # noqa: T201
        return
    if not found:
        echo(f"{first.id} and {second.id} do not differ")
        return
    rows = [[one["of"], one["name"], escape(value(one["a"])), escape(value(one["b"]))] for one in found]
    table(["of", "name", first.id, second.id], rows)


def _settings(first: SessionDir, second: SessionDir) -> list[dict[str, Any]]:
    one, other = ({name: about.get(name) for name in SPEC} for about in (first.read_session(), second.read_session()))
    found = differences(one, other)
    return [{"of": "settings", "name": path.removeprefix("trial."), "a": a, "b": b} for path, a, b in found]


def _origin(first: SessionDir, second: SessionDir) -> list[dict[str, Any]]:
    one, other = (_newest_provenance(directory.path) for directory in (first, second))
    return [{"of": each.kind, "name": each.name, "a": each.a, "b": each.b} for each in origin_differences(one, other)]


def _newest_provenance(directory: Path) -> dict[str, Any]:
    life = 1
    while (directory / provenance_name(life + 1)).exists():
        life += 1
    return read_provenance(directory / provenance_name(life))
