"""The command `envs`: environments with their spaces, backends, exact resume and measured speed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from rldsl.cli.tables import console, echo, escape, table
from rldsl.launch.worker import lines_of_worker
from rldsl.report.words import amount, count
from rldsl.spec.errors import SpecError, suggestion
from rldsl.spec.known import ANY_OTHER, Known, known

FOLDED = {"atari": "game", "playground": "task"}
"""Families that are shown as one line unless they are named."""


@dataclass(frozen=True)
class Line:
    """One line of the table: an environment, or a family of `folded` environments."""

    first: Known
    folded: int = 1
    speed: float | None = None
    problem: str = ""

    @cached_property
    def missing(self) -> str | None:
        """What this machine lacks to run it."""
        return self.first.env.missing()

    @property
    def measurable(self) -> bool:
        return bool(self.first.env.implementation) and not self.missing and self.first is not ANY_OTHER

    def data(self) -> dict[str, Any]:
        """The line as JSON."""
        one = self.first
        facts: dict[str, Any] = {
            "family": one.env.kind,
            "id": one.env.id,
            "observation": one.observation,
            "actions": one.actions,
        }
        facts |= {"backend": one.backend, "exact_resume": one.exact_resume, "missing": self.missing}
        measured = {} if self.speed is None else {"steps_per_second": self.speed}
        return {**facts, **measured, **({"problem": self.problem} if self.problem else {})}


@dataclass(frozen=True)
class Bench:
    """Parameters of the speed measurement; `rows` environments are stepped as one batch."""

    rows: int
    threads: int
    seconds: float


def show_envs(names: Sequence[str], bench: Bench | None, as_json: bool) -> None:
    """Prints the environments that match the names, by default all; measures their speed if `bench` is given."""
    lines = select_envs(names, fold=not as_json or bench is not None)
    if bench is not None:
        lines = list(_measured(lines, bench))
    if as_json:
        print(json.dumps([one.data() for one in lines], indent=2))  # noqa: T201
    else:
        _show(lines, names, bench)


def select_envs(names: Sequence[str], fold: bool) -> list[Line]:
    """The environments of these families, or with these parts of ids; case does not matter."""
    everything = list(known())
    if not names:
        return _folded(everything) if fold else [Line(one) for one in everything]
    matching = [one for one in everything if any(_matches(name, one) for name in names)]
    for name in names:
        if not any(_matches(name, one) for one in matching):
            valid = dict.fromkeys([*(one.env.kind for one in everything), *(one.env.id for one in everything)])
            raise SpecError(f"there is no environment {name!r}; {suggestion(name, valid)}")
    return [Line(one) for one in matching]


def _matches(name: str, one: Known) -> bool:
    return name.lower() == one.env.kind or name.lower() in one.env.id.lower()


def _folded(everything: list[Known]) -> list[Line]:
    lines = []
    for family, group in groupby(everything, key=lambda one: one.env.kind):
        members = list(group)
        example = next((one for one in members if one.env.id in ("Pong", "CartpoleBalance")), members[0])
        lines += [Line(example, len(members))] if family in FOLDED else [Line(one) for one in members]
    return lines


def _measured(lines: list[Line], bench: Bench) -> Iterator[Line]:
    """The lines with their speeds; on a terminal, a progress bar is shown."""
    from rich.progress import Progress

    answers = _answers([one for one in lines if one.measurable], bench)
    with Progress(console=console(), transient=True, disable=not console().is_terminal) as progress:
        task = progress.add_task("measuring", total=len(lines))
        for one in lines:
            progress.update(task, description=one.first.env.id)
            yield replace(one, **next(answers, {"problem": "its process ended"})) if one.measurable else one
            progress.advance(task)


def _answers(lines: list[Line], bench: Bench) -> Iterator[dict[str, Any]]:
    if not lines:
        return
    options = ["--rows", str(bench.rows), "--threads", str(bench.threads), "--seconds", str(bench.seconds)]
    for one in lines:
        options += ["--env", json.dumps(one.first.env.data())]
    for text in lines_of_worker("rldsl.envs.bench", options):
        if text.startswith("{"):
            yield json.loads(text)


def _show(lines: list[Line], names: Sequence[str], bench: Bench | None) -> None:
    last = "resume" if bench is None else "steps/s"
    columns = ["family", "id", "observation", "actions", "backend", last]
    table(columns, [_cells(one, bench is not None) for one in lines], right=("steps/s",))
    for note in dict.fromkeys(_notes(lines)):
        echo(f"[dim]{escape(note)}[/dim]")
    if not names:
        echo("[dim]`rldsl envs atari` and `rldsl envs playground` list those families[/dim]")
    if bench is not None:
        echo(
            f"[dim]{count(bench.rows, 'environment')} together, {count(bench.threads, 'thread')}, random actions[/dim]"
        )


def _cells(one: Line, measured: bool) -> list[str]:
    about = one.first
    speed = "" if one.speed is None else amount(one.speed)
    return [
        about.env.kind,
        about.env.id if one.folded == 1 else count(one.folded, FOLDED[about.env.kind]),
        about.observation,
        about.actions,
        about.backend,
        speed if measured else "exact" if about.exact_resume else "reset",
    ]


def _notes(lines: list[Line]) -> Iterator[str]:
    """Notes below the table."""
    for one in lines:
        if one.problem:
            yield f"{one.first.env.id} cannot be measured: {one.problem}"
        elif one.missing:
            yield f"{one.first.env.kind}: {one.missing}"
        elif one.folded > 1 and one.speed:
            yield f"of the {count(one.folded, FOLDED[one.first.env.kind])} {one.first.env.id} was measured"
