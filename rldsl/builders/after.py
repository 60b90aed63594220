"""Checks of `.after(...)` among the experiments that are declared together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment


def check_after(declared: Sequence[ExperimentBuilder | Experiment], built: Sequence[Experiment], call: str) -> None:
    """Refuses experiments that come after others which `call` does not have, after searches, or after themselves."""
    by_name = {one.name: one for one in built}
    for given, one in zip(declared, built, strict=True):
        where = given.after_at if isinstance(given, ExperimentBuilder) else None
        for name in one.after:
            if name not in by_name:
                hint = f"pass it to {call} as well"
                raise SpecError(f"{one.name} comes after {name}, which is not declared: {hint}", where)
            if search := next((each.name for each in (one, by_name[name]) if each.sampled), None):
                raise SpecError(f"{one.name} comes after {name}: {search} is a search, run it by itself first", where)
        if circle := _circle(one.name, by_name):
            raise SpecError(f"{one.name} would wait for itself: {' after '.join(circle)}", where)


def _circle(name: str, experiments: Mapping[str, Experiment]) -> list[str]:
    """The way from an experiment back to itself; empty if there is none."""
    ways, seen = [[name]], set[str]()
    while ways:
        way = ways.pop()
        for before in experiments[way[-1]].after if way[-1] in experiments else ():
            if before == name:
                return [*way, before]
            if before not in seen:
                seen.add(before)
                ways.append([*way, before])
    return []
