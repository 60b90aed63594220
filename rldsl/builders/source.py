"""The source of an experiment file, written from a complete experiment: the inverse of the builders.

Lines are broken as `ruff format` and `black` break them, at their default line length of 88 and at every larger one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rldsl.spec.base import Spec, canonical, is_ours
from rldsl.spec.environment import Gym
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment

WIDTH = 88
INDENT = " " * 4
BUDGET_METHODS = ("frames", "log_every", "checkpoint_every")


def experiment_source(experiment: Experiment, docstring: str) -> str:
    """A file that declares this experiment, without its search. Every setting that is not a default is written."""
    if foreign := [type(spec).__name__ for spec in _specs(experiment) if not is_ours(type(spec))]:
        raise SpecError(
            f"{experiment.name} uses {', '.join(foreign)}, which rldsl does not define: only an experiment made of "
            "rldsl's own classes can be written as a file"
        )
    if isinstance(experiment.env, Gym) and (lacks := experiment.env.missing()):
        raise SpecError(f"{experiment.name} cannot be written as a file: {lacks}")
    name = _variable(experiment)
    names = sorted({*_class_names(experiment), "experiment", "main"}, key=_import_order)
    return "\n".join(
        [
            f'"""{docstring}"""',
            "",
            *_import(names),
            "",
            *_declaration(name, experiment),
            "",
            'if __name__ == "__main__":',
            f"{INDENT}main({name})",
            "",
        ]
    )


def _declaration(name: str, experiment: Experiment) -> list[str]:
    """`ppo = experiment(...).env(...)...` in one line if it fits, otherwise one call per line."""
    base, derived = _base_name(experiment)
    calls: list[tuple[str, list[tuple[str, Any]]]] = [
        ("experiment", [("", base)]),
        (".env", [("", experiment.env)]),
        (".agent", [("", experiment.agent)]),
        *_settings(experiment),
        *([] if derived else [(".named", [("", experiment.name)])]),
    ]
    line = f"{name} = " + "".join(_call(method, arguments) for method, arguments in calls)
    if len(line) <= WIDTH:
        return [line]
    # A line of at most 120 columns would be joined again by a formatter with a larger line length: the trailing commas
    # of one call that is broken keep it from that.
    broken = ".agent" if _arguments(experiment.agent) else ".env"
    lines = [f"{name} = ("]
    for method, arguments in calls:
        lines += _layout(method, arguments, INDENT, "", force=method == broken)
    return [*lines, ")"]


def _settings(experiment: Experiment) -> Iterable[tuple[str, list[tuple[str, Any]]]]:
    """The calls for budget, seeds and everything else that is not a default."""
    for field in BUDGET_METHODS:
        if (value := getattr(experiment.budget, field)) is not None:
            yield f".{field}", [("", value)]
    seeds = experiment.seeds
    first = [("first", seeds.first)] if seeds.first else []
    yield ".seeds", [("", list(seeds.values))] if seeds.values else [("", seeds.count), *first]
    if experiment.init_from is not None:
        init = experiment.init_from
        yield ".init_from", [("", init.source), ("checkpoint", init.checkpoint)]
    if experiment.target is not None:
        score = experiment.target.score
        yield ".target", [("", int(score) if score.is_integer() else score)]
    if experiment.evaluation is not None:
        yield ".evaluate", _arguments(experiment.evaluation)
    if compute := _arguments(experiment.compute):
        yield ".compute", compute
    if canonical(experiment.launcher) != canonical(type(experiment).model_fields["launcher"].default):
        yield ".on", [("", experiment.launcher)]


def _arguments(spec: Spec) -> list[tuple[str, Any]]:
    """The name (empty if positional) and value of every field that is not a default."""
    arguments, positional = [], True
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if name == "kind" or (not field.is_required() and _same(value, field.get_default(call_default_factory=True))):
            positional &= field.kw_only is not False  # a positional field after one that was left out needs its name
            continue
        arguments.append(("" if positional and field.kw_only is False else name, value))
    return sorted(arguments, key=lambda argument: argument[0] != "")


def _same(value: Any, default: Any) -> bool:
    """Whether a value equals a default in all of its fields, also those that are not part of the identity."""
    if isinstance(value, Spec) and isinstance(default, Spec):
        return type(value) is type(default) and value == default
    return value.__class__ is default.__class__ and bool(value == default)


def _layout(callee: str, arguments: list[tuple[str, Any]], indent: str, end: str, force: bool = False) -> list[str]:
    """The lines of a call: one if it fits, otherwise one argument per line."""
    line = f"{indent}{_call(callee, arguments)}{end}"
    if not arguments or (len(line) <= WIDTH and not force):
        return [line]
    lines = [f"{indent}{callee}("]
    only = len(arguments) == 1 and not arguments[0][0]
    for name, value in arguments:
        prefix = f"{name}=" if name else ""
        lines += _value_lines(value, indent + INDENT, prefix, "" if only and _breaks(value) else ",", force and only)
    return [*lines, f"{indent}){end}"]


def _value_lines(value: Any, indent: str, prefix: str, end: str, force: bool) -> list[str]:
    if isinstance(value, Spec):
        return _layout(f"{prefix}{type(value).__name__}", _arguments(value), indent, end, force)
    line = f"{indent}{prefix}{_value(value)}{end}"
    if len(line) <= WIDTH or not isinstance(value, dict | list | tuple):
        return [line]
    opening, closing = {dict: ("{", "}"), list: ("[", "]")}.get(type(value), ("(", ")"))
    lines = [f"{indent}{prefix}{opening}"]
    for key, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
        lines += _value_lines(item, indent + INDENT, f"{_value(key)}: " if isinstance(value, dict) else "", ",", False)
    return [*lines, f"{indent}{closing}{end}"]


def _breaks(value: Any) -> bool:
    """Whether a value is a call with arguments: formatters put no comma behind it if it is the only argument."""
    return isinstance(value, Spec) and bool(_arguments(value))


def _call(callee: str, arguments: list[tuple[str, Any]]) -> str:
    return f"{callee}({', '.join(f'{name}={_value(value)}' if name else _value(value) for name, value in arguments)})"


def _value(value: Any) -> str:
    """The value as a Python expression in one line."""
    if isinstance(value, Spec):
        return _call(type(value).__name__, _arguments(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10_000:
        return f"{value:_}"
    if isinstance(value, tuple):
        items = ", ".join(map(_value, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)}: {_value(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _base_name(experiment: Experiment) -> tuple[str, bool]:
    """The name for `experiment(...)`, and whether the builder derives the full name from it."""
    base, _, last = experiment.name.rpartition("/")
    derived = bool(base) and last == experiment.agent.kind
    return (base or experiment.name), derived


def _variable(experiment: Experiment) -> str:
    kind = experiment.agent.kind.replace("-", "_")
    return kind if kind.isidentifier() and kind not in ("experiment", "main") else "best"


def _import(names: list[str]) -> list[str]:
    line = f"from rldsl import {', '.join(names)}"
    return [line] if len(line) <= WIDTH else ["from rldsl import (", *(f"{INDENT}{name}," for name in names), ")"]


def _import_order(name: str) -> tuple[int, str]:
    """Constants, classes, then functions, as isort sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _class_names(experiment: Experiment) -> set[str]:
    """The classes that the file names: those of parts that are written as a call of their class."""
    calls = [experiment.env, experiment.agent, *(value for _, values in _settings(experiment) for _, value in values)]
    return {type(spec).__name__ for value in calls for spec in _written(value)}


def _written(value: Any) -> Iterable[Spec]:
    if isinstance(value, Spec):
        yield value
        for _, inner in _arguments(value):
            yield from _written(inner)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _written(item)


def _specs(experiment: Experiment) -> Iterable[Spec]:
    for part in (experiment.env, experiment.agent, experiment.launcher):
        yield from _written(part)
