"""The command `references`: published scores and targets of environments."""

from __future__ import annotations

import json

from rldsl.cli.tables import echo, escape, table
from rldsl.report.benchmark_page import number
from rldsl.report.references import matching
from rldsl.report.words import amount
from rldsl.spec.errors import SpecError


def show_references(env: str | None, as_json: bool) -> None:
    """Prints the targets, then a line for each published score."""
    targets, scores = matching(env)
    if not targets and not scores:
        raise SpecError(f"no published score of an environment called {env}; `rldsl references` lists all")
    if as_json:
        found = {"targets": [one.data() for one in targets], "scores": [one.data() for one in scores]}
        print(json.dumps(found, indent=2))  # noqa: T201
        return
    table(
        ["environment", "target", "source"], [[one.env, f"{one.target:g}", one.source] for one in targets], ["target"]
    )
    if scores:
        echo("")
        names = ["environment", "algorithm", "score", "std", "n", "frames", "protocol", "source"]
        rows = [
            [
                one.env,
                one.algorithm,
                number(one.score),
                number(one.std),
                "" if one.n is None else str(one.n),
                amount(one.frames),
                one.protocol,
                escape(one.source),
            ]
            for one in scores
        ]
        table(names, rows, right=("score", "std", "n", "frames"))
