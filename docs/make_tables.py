"""Writes the tables of the documents: of fields, from their own descriptions; of scores and speed, from results/.

A table stands between `<!-- fields: PPO -->` and `<!-- end of fields -->`; `python docs/make_tables.py` writes it anew.
`<!-- fields: PPO, as ActorCritic -->` leaves out the fields in which PPO is as ActorCritic is. Scores and speed stand
between `<!-- scores -->` and `<!-- end of scores -->`, and speed and environments likewise.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

import rldsl.cli.commands  # noqa: F401  (every spec is defined once this is there)
from rldsl.spec.base import NoHash, PerMember, Spec

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "results"
MARKED = re.compile(r"(<!-- fields: (\w+)(?:, as (\w+))? -->\n).*?(<!-- end of fields -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """A document with its tables as they should be."""
    text = MARKED.sub(lambda found: f"{found[1]}{table(found[2], found[3])}{found[4]}", text)
    for name, made in (("scores", scores), ("speed", speed), ("environments", environments)):
        marked = re.compile(f"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text = marked.sub(lambda found, made=made: f"{found[1]}{made()}{found[2]}", text)
    return text


def scores() -> str:
    """A line for each trial in results/."""
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*/*.json"))]
    rows = (
        f"| {one['env']} | {one['experiment']} | {one['score']:.1f} | {interval(one)} | {one['n']} "
        f"| {one['frames']:,} |\n"
        for one in found
    )
    return f"\n| environment | experiment | score | 95% | n | frames |\n|---|---|---|---|---|---|\n{''.join(rows)}\n"


def interval(one: dict[str, Any]) -> str:
    """One seed has none."""
    return "{:.1f} .. {:.1f}".format(*one["interval_95"]) if one["interval_95"] else "-"


def speed() -> str:
    """A line for each work and peer in results/speed.json."""
    measured = json.loads((RESULTS / "speed.json").read_text())["medians"]
    rows = (
        f"| {one['work']} | {one['peer']} | {one['ours_fps']:,.0f} | {one['peer_fps']:,.0f} | {one['ratio']:.1f} |\n"
        for one in measured
        if one["peer_fps"]
    )
    return f"\n| work | peer | rldsl, fps | peer, fps | ratio |\n|---|---|---|---|---|\n{''.join(rows)}\n"


def environments() -> str:
    """A line for each environment in results/environments.json."""
    rows = (
        f"| {one['env']} | {one['ours']:,.0f} | {one['gymnasium']:,.0f} | {one['ratio']:.1f} |\n"
        for one in json.loads((RESULTS / "environments.json").read_text())
    )
    return f"\n| environment | rldsl | Gymnasium | ratio |\n|---|---|---|---|\n{''.join(rows)}\n"


def table(name: str, base: str | None) -> str:
    """The fields of a spec that its base does not have, or has otherwise."""
    inherited = Spec.models[base].model_fields if base else {}
    fields = {
        name: field
        for name, field in Spec.models[name].model_fields.items()
        if name != "kind" and (name not in inherited or _row(name, field) != _row(name, inherited[name]))
    }
    if not fields:
        return "\nNo field of its own.\n\n"
    rows = "".join(_row(name, field) for name, field in fields.items())
    return f"\n| field | default | meaning |\n|---|---|---|\n{rows}\n"


def _row(name: str, field: FieldInfo) -> str:
    marks = [mark for mark, kind in (("†", PerMember), ("°", NoHash)) if kind in field.metadata]
    meaning = (field.description or "As its family has it").replace("|", "\\|")
    return f"| `{name}`{''.join(marks)} | {_default(field)} | {meaning} |\n"


def _default(field: FieldInfo) -> str:
    return "required" if field.is_required() else f"`{_written(field.get_default(call_default_factory=True))}`"


def _written(value: Any) -> str:
    """A default as a person would write it in an experiment."""
    if not isinstance(value, Spec):
        return repr(value)
    fields = type(value).model_fields
    said = {name: getattr(value, name) for name, field in fields.items() if name != "kind"}
    changed = {name: one for name, one in said.items() if one != fields[name].default}
    shown = (f"{'' if fields[name].kw_only is False else f'{name}='}{_written(one)}" for name, one in changed.items())
    return f"{type(value).__name__}({', '.join(shown)})"


def main() -> None:
    for path in sorted(DOCS.glob("*.md")):
        path.write_text(with_tables(path.read_text()))


if __name__ == "__main__":
    main()
