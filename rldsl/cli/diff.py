"""The command `diff`: what differs between two sessions, or between the code of a session and that of a file."""

from __future__ import annotations

import json
from pathlib import Path

from rldsl.cli.load import load
from rldsl.cli.tables import echo, escape, table
from rldsl.report.code_difference import Code, FileDifference, code_differences
from rldsl.report.difference import session_differences
from rldsl.report.words import count, value
from rldsl.spec.session import Session
from rldsl.store.code_version import CodeVersions
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir

MOST_LINES = 200
"""Lines of the diff of a file that are shown."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show_diff(a: str, b: str, runs: Path, as_json: bool) -> None:
    """Prints a line for each difference in settings, packages and host, then how the code differs."""
    first = Runs(runs).find(a)
    if b.endswith(".py"):
        _show_present(first, Path(b), as_json)
        return
    second = Runs(runs).find(b)
    names = _label(first), _label(second)
    differences = session_differences(first, second)
    code = code_differences(Code.of_session(names[0], first.path), Code.of_session(names[1], second.path))
    if as_json:
        listed = [one._asdict() for one in differences]
        files = [{"of": "code", "name": one.name, "diff": one.diff} for one in code]
        print(json.dumps([*listed, *files], indent=2))  # noqa: T201
        return
    if not differences and not code:
        echo(f"{names[0]} and {names[1]} do not differ")
        return
    if differences:
        rows = [[one.of, one.name, escape(value(one.a)), escape(value(one.b))] for one in differences]
        table(["of", "name", *names], rows)
    _show_files(code)


def _label(session: SessionDir) -> str:
    """The id of a session; the name of a directory that was set aside."""
    return session.path.name if session.seed is None else session.id


def _show_present(session: SessionDir, file: Path, as_json: bool) -> None:
    """How the code of a session differs from the present code, with which the file would train it."""
    load(file)  # for the classes that it defines
    version = CodeVersions(file).of(Session.from_record(session.read_session()).trial)
    now = Code("now", version.facts(), session.path.resolve().parents[2], version)
    then = Code.of_session(session.id, session.path)
    if not then.files:
        echo(f"{session.id} has no record of its code: it was trained by an earlier version of rldsl")
        return
    found = code_differences(then, now)
    if as_json:
        print(json.dumps([{"of": "code", "name": one.name, "diff": one.diff} for one in found], indent=2))  # noqa: T201
    elif found:
        _show_files(found)
    else:
        echo(f"{session.id} was trained with the present code")


def _show_files(files: list[FileDifference]) -> None:
    if not files:
        return
    echo(f"[bold]{count(len(files), 'source file')} differ{'s' if len(files) == 1 else ''}[/bold]")
    for one in files:
        if one.diff is None:
            echo(f"{escape(one.name)}: its text is not known any more")
            continue
        lines = one.diff.splitlines()
        for line in lines[:MOST_LINES]:
            colour = COLOURS.get(line[:1])
            echo(f"[{colour}]{escape(line)}[/]" if colour else escape(line))
        if len(lines) > MOST_LINES:
            echo(f"[dim]... {count(len(lines) - MOST_LINES, 'more line')}[/dim]")
