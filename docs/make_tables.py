"""Writes the generated parts of README.md and docs/*.md; `python docs/make_tables.py` or `make tables` refreshes them.

| marked by | contents |
|---|---|
| `<!-- fields: PPO -->` ... `<!-- end of fields -->` | the fields of a spec, from their descriptions |
| `<!-- fields: PPO, as ActorCritic -->` | only those that differ from the fields of `ActorCritic` |
| `<!-- commands -->` ... `<!-- end of commands -->` | the commands and their options |
| `<!-- scores -->` ... `<!-- end of scores -->` | scores, from results/benchmarks.json |
| `<!-- speed -->` ... `<!-- end of speed -->` | training speed, from results/speed.json |
| `<!-- environments -->` ... `<!-- end of environments -->` | stepping speed, from results/environments.json |
| `<!-- ablation -->` ... `<!-- end of ablation -->` | speed with and without own kernels, from results/ablation.json |
| `<!-- coverage of the mean -->` ..., `difference`, `improvement` | coverage of intervals, from results/coverage.json |
| `<!-- ratio: ppo-cartpole sb3 -->9.1<!-- end -->` | one ratio of results/speed.json, inside a sentence |

It also writes the scores of random policies that come with the package, from results/benchmarks.json.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer
from pydantic.fields import FieldInfo

import rldsl.cli.commands  # noqa: F401  (imports every module that defines a spec)
from rldsl.cli.app import OF_A_FILE, OF_RLDSL
from rldsl.cli.options import Choice
from rldsl.report.benchmark_table import RANDOM_SCORES
from rldsl.spec.base import NoHash, PerMember, Spec

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "results"
FIELDS = re.compile(r"(<!-- fields: (\w+)(?:, as (\w+))? -->\n).*?(<!-- end of fields -->)", re.DOTALL)
RATIO = re.compile(r"(<!-- ratio: ([\w-]+) (\w+) -->).*?(<!-- end -->)")


def with_tables(text: str) -> str:
    """A page with its generated parts up to date."""
    text = FIELDS.sub(lambda match: f"{match[1]}{fields(match[2], match[3])}{match[4]}", text)
    text = RATIO.sub(lambda match: f"{match[1]}{ratio(match[2], match[3])}{match[4]}", text)
    for name, make in TABLES.items():
        marked = re.compile(f"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text = marked.sub(lambda match, make=make: f"{match[1]}{make()}{match[2]}", text)
    return text


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with an empty line before and after it."""
    head, *body = (f"| {' | '.join(cells)} |\n" for cells in (header, *rows))
    return f"\n{head}|{'---|' * len(header)}\n{''.join(body)}\n"


def scores() -> str:
    """One row per accepted result of a trained agent, from the table that `rldsl report results` wrote."""
    rows = json.loads((RESULTS / "benchmarks.json").read_text())["rows"]
    rows = [row for row in rows if row["algorithm"] != "random policy"]
    header = ("environment", "experiment", "status", "score", "95% interval of the score", "n", "target", "frames")
    return table(header, map(_score_row, rows))


def _score_row(row: dict[str, Any]) -> list[str]:
    low, high, target = row["interval_low"], row["interval_high"], row["target"]
    return [
        row["environment"],
        row["experiment"],
        row["status"],
        f"{row['score']:.1f}",
        "-" if low is None else f"{low:.1f} .. {high:.1f}",
        str(row["n"]),
        "-" if target is None else f"{target:g}",
        f"{row['frames']:,}",
    ]


def speed() -> str:
    """One row per workload and library in results/speed.json."""
    rows = (
        [
            measured["work"],
            LIBRARIES[measured["peer"]],
            f"{measured['ours_fps']:,.0f}",
            f"{measured['peer_fps']:,.0f}",
            f"{measured['ratio']:.1f}",
        ]
        for measured in _medians()
        if measured["peer_fps"]
    )
    return table(("workload", "compared with", "rldsl, frames/s", "other, frames/s", "ratio"), rows)


def ratio(work: str, peer: str) -> str:
    """How many times as fast as another library rldsl is on a workload."""
    (measured,) = (m for m in _medians() if (m["work"], m["peer"]) == (work, peer))
    return f"{measured['ratio']:.1f}"


def _medians() -> list[dict[str, Any]]:
    return json.loads((RESULTS / "speed.json").read_text())["medians"]


def environments() -> str:
    """One row per environment in results/environments.json."""
    measurements = json.loads((RESULTS / "environments.json").read_text())
    rows = ([m["env"], f"{m['ours']:,.0f}", f"{m['gymnasium']:,.0f}", f"{m['ratio']:.1f}"] for m in measurements)
    return table(("environment", "rldsl, steps/s", "Gymnasium, steps/s", "ratio"), rows)


def ablation() -> str:
    """One row per workload in results/ablation.json; nothing before it has been measured."""
    path = RESULTS / "ablation.json"
    if not path.exists():
        return "\n"
    medians = json.loads(path.read_text())["medians"]
    rows = ([work, f"{m['default']:,.0f}", f"{m['torch']:,.0f}", f"{m['ratio']:.2f}"] for work, m in medians.items())
    return table(("workload", "default, frames/s", "`RLDSL_PRODUCTS=torch`, frames/s", "ratio"), rows)


def coverage(statistic: str) -> str:
    """One row per distribution and interval in results/coverage.json: how often it contains the truth, its width."""
    measured = json.loads((RESULTS / "coverage.json").read_text())[statistic]
    seeds = sorted({one["n"] for one in measured})
    cells = {(one["distribution"], one["method"], one["n"]): _coverage_cell(one) for one in measured}
    order = list(dict.fromkeys(one["distribution"] for one in measured))
    kinds = dict.fromkeys((one["distribution"], one["method"]) for one in measured)
    rows = ([*kind, *(cells[*kind, n] for n in seeds)] for kind in sorted(kinds, key=lambda kind: order.index(kind[0])))
    return table(("scores", "interval", *(f"n = {n}" for n in seeds)), rows)


def _coverage_cell(measured: dict[str, Any]) -> str:
    width = "∞" if measured["width"] is None else f"{measured['width']:.1f}"
    return f"{100 * measured['coverage']:.0f}% ({width})"


def commands() -> str:
    """A section per command: its help, its arguments and its options. Options that commands share come first."""
    app = typer.Typer(add_completion=False)
    for command in (*OF_A_FILE, *OF_RLDSL):
        app.command(command.__name__.rstrip("_"))(_with_shared_options(command))
    group: Any = typer.main.get_command(app)
    shared = set(Choice.__dataclass_fields__) - {"file"}
    train = group.commands["train"]
    text = "\n## Shared options\n\nEvery command that takes a file has these.\n"
    text += table(OPTIONS, [_option(param) for param in train.params if param.name in shared])
    for name, command in group.commands.items():
        arguments = " ".join(_argument(param) for param in command.params if param.param_type_name == "argument")
        text += f"## {name}\n\n`rldsl {f'{name} {arguments}'.strip()}`\n\n{command.help}\n"
        own = [param for param in command.params if param.name not in shared]
        rows = [_option(param) for param in own if param.param_type_name == "option" and param.name != "help"]
        text += table(OPTIONS, rows) if rows else "\n"
    return text


def _with_shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the parameters of a command, those of its `choice` spelled out, for typer to inspect."""

    def documented(**_: Any) -> None: ...

    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(Choice, eval_str=True).parameters if "choice" in own else {}
    parameters = [*shared.values(), *(parameter for name, parameter in own.items() if name != "choice")]
    documented.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    documented.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    documented.__doc__ = command.__doc__
    return documented


OPTIONS = ("option", "default", "meaning")


def _argument(param: Any) -> str:
    return param.metavar or (param.name.upper() if param.required else f"[{param.name.upper()}]")


def _option(param: Any) -> list[str]:
    metavar = "" if param.is_flag else f" {param.metavar or param.name.upper()}"
    default = "" if param.is_flag or param.default in (None, ()) else f"`{param.default}`"
    return [f"`{param.opts[0]}{metavar}`", default, (param.help or "").replace("|", "\\|")]


def fields(name: str, base: str | None) -> str:
    """The fields of a spec, without those that are the same in its base."""
    inherited = Spec.models[base].model_fields if base else {}
    rows = [
        _field_row(name, field)
        for name, field in Spec.models[name].model_fields.items()
        if name != "kind" and (name not in inherited or _field_row(name, field) != _field_row(name, inherited[name]))
    ]
    return table(("field", "default", "meaning"), rows) if rows else "\nNo fields of its own.\n\n"


def _field_row(name: str, field: FieldInfo) -> list[str]:
    marks = [mark for mark, kind in (("†", PerMember), ("°", NoHash)) if kind in field.metadata]
    meaning = (field.description or "Same as in its family").replace("|", "\\|")
    return [f"`{name}`{''.join(marks)}", _default(field), meaning]


def _default(field: FieldInfo) -> str:
    return "required" if field.is_required() else f"`{_source(field.get_default(call_default_factory=True))}`"


def _source(value: Any) -> str:
    """A default as one would write it in an experiment file."""
    if not isinstance(value, Spec):
        return repr(value)
    fields = type(value).model_fields
    values = {name: getattr(value, name) for name in fields if name != "kind"}
    changed = {name: set_to for name, set_to in values.items() if set_to != fields[name].default}
    words = [f"{'' if fields[name].kw_only is False else f'{name}='}{_source(v)}" for name, v in changed.items()]
    return f"{type(value).__name__}({', '.join(words)})"


LIBRARIES = {"sb3": "Stable-Baselines3", "sbx": "SBX"}
TABLES: dict[str, Callable[[], str]] = {
    "scores": scores,
    "speed": speed,
    "environments": environments,
    "ablation": ablation,
    "coverage of the mean": partial(coverage, "mean"),
    "coverage of the difference": partial(coverage, "difference"),
    "coverage of the improvement": partial(coverage, "improvement"),
    "commands": commands,
}


def random_scores() -> str:
    """The scores of random policies that come with the package, from results/benchmarks.json."""
    rows = json.loads((RESULTS / "benchmarks.json").read_text())["rows"]
    measured = sorted((row for row in rows if row["algorithm"] == "random policy"), key=lambda row: row["environment"])
    lines = [f"{row['environment']},{row['score']:.6g},{row['n']},{row['frames']}\n" for row in measured]
    return "env,score,n,frames\n" + "".join(lines)


def main() -> None:
    RANDOM_SCORES.write_text(random_scores())
    for path in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))):
        path.write_text(with_tables(path.read_text()))


if __name__ == "__main__":
    main()
