"""The command `launchers`: the launchers of a project, and whether jobs can be submitted with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rldsl.cli.options import RUNS
from rldsl.cli.tables import escape, table
from rldsl.launch.backend import Check, backend_for
from rldsl.launch.profiles import load_launcher, profile_files
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import StoreError


def show_launchers(names: Sequence[str], as_json: bool) -> int:
    """Prints the checks of each launcher; returns 1 if one that was named cannot be used."""
    launchers = {name: list(_checks(name)) for name in names or _all()}
    if as_json:
        facts = {name: [check._asdict() for check in checks] for name, checks in launchers.items()}
        print(json.dumps(facts, indent=2))  # noqa: T201
    else:
        table(["launcher", "check", "", "what it says"], list(_rows(launchers.items())))
    failed = any(not (check.ok or check.optional) for checks in launchers.values() for check in checks)
    return 1 if names and failed else 0


def _all() -> list[str]:
    """The profiles of the project, and the built-in kinds that have no profile."""
    files = {path.stem: str(path) for path in profile_files()}
    return list({**files, **{kind: kind for kind in Launcher.kinds if kind not in files}}.values())


def _checks(name: str) -> Iterator[Check]:
    try:
        yield from backend_for(load_launcher(name), Path(RUNS)).check()
    except (SpecError, StoreError) as error:
        yield Check("launcher", False, str(error))


def _rows(launchers: Iterable[tuple[str, list[Check]]]) -> Iterator[list[str]]:
    for name, checks in launchers:
        for index, check in enumerate(checks):
            mark = "[green]yes[/]" if check.ok else f"[{'yellow' if check.optional else 'red'}]no[/]"
            yield ["" if index else escape(name), check.name, mark, escape(check.words)]
