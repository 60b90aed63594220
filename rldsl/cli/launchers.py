"""The command `launchers`: the places to run, and whether jobs could go there from here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rldsl.cli.load import launcher_files, load_launcher
from rldsl.cli.options import RUNS
from rldsl.cli.tables import escape, table
from rldsl.launch.contract import Check, place_of
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import StoreError


def show_launchers(names: Sequence[str], as_json: bool) -> int:
    """Prints the checks of each; 1 if one that was asked for cannot be used."""
    found = {name: list(_checks(name)) for name in names or _all()}
    if as_json:
        facts = {name: [check._asdict() for check in checks] for name, checks in found.items()}
        print(json.dumps(facts, indent=2))  # noqa: T201
    else:
        table(["launcher", "check", "", "what it says"], list(_rows(found.items())))
    bad = any(not check.ok for checks in found.values() for check in checks)
    return 1 if names and bad else 0


def _all() -> list[str]:
    """The files of the project, and what rldsl knows without a file."""
    files = {path.stem: str(path) for path in launcher_files()}
    return list({**files, **{kind: kind for kind in Launcher.kinds if kind not in files}}.values())


def _checks(name: str) -> Iterator[Check]:
    try:
        yield from place_of(load_launcher(name), Path(RUNS)).check()
    except (SpecError, StoreError) as error:
        yield Check("launcher", False, str(error))


def _rows(found: Iterable[tuple[str, list[Check]]]) -> Iterator[list[str]]:
    for name, checks in found:
        for index, check in enumerate(checks):
            mark = "[green]yes[/]" if check.ok else "[red]no[/]"
            yield ["" if index else escape(name), check.name, mark, escape(check.words)]
