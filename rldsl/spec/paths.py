"""Dotted paths into a spec: `agent.gamma`, `env.num_envs`, or just `gamma`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from rldsl.spec.base import Spec
from rldsl.spec.errors import suggestion

SHORT = ("agent", "env", "budget", "evaluation", "compute", "seeds", "target")
"""Parts in which a bare name is searched, in this order, if the experiment itself has no field of that name."""

Parts: TypeAlias = Mapping[str, Any]
"""The fields of an experiment, which may still be incomplete."""


def parts(spec: Spec) -> Parts:
    """The fields of a spec by name."""
    return {name: getattr(spec, name) for name in type(spec).model_fields}


def resolve(known: Parts, path: str) -> str | None:
    """The full path that `path` stands for; None if there is no such field."""
    head, _, rest = path.partition(".")
    if head in known and (not rest or _exists(known[head], rest)):
        return path
    for name in SHORT:
        if _exists(known.get(name), path):
            return f"{name}.{path}"
    return None


def unknown_path(path: str, *known: Parts) -> str:
    """The error message for a path that is in none of these, with the nearest valid paths."""
    full = list(dict.fromkeys(path for each in known for name, value in each.items() for path in _paths(name, value)))
    return f"{path} names no field; {suggestion(path, full if '.' in path else _short_names(full, known))}"


def _short_names(full: Iterable[str], known: Iterable[Parts]) -> list[str]:
    """The last names of paths where they suffice to name the field, otherwise the whole paths."""
    tails = {path: path.rpartition(".")[2] for path in full}
    return list(
        dict.fromkeys(tail if any(resolve(each, tail) for each in known) else path for path, tail in tails.items())
    )


def _paths(name: str, value: Any) -> Iterator[str]:
    yield name
    if isinstance(value, Spec):
        for field, inner in parts(value).items():
            if field != "kind":
                yield from _paths(f"{name}.{field}", inner)


def nodes(spec: Spec, prefix: str = "") -> Iterator[tuple[str, Spec]]:
    """A spec (path "") and every spec nested in it, with their paths."""
    yield prefix, spec
    for name, value in parts(spec).items():
        if isinstance(value, Spec):
            yield from nodes(value, f"{prefix}.{name}" if prefix else name)


def get(spec: Any, path: str) -> Any:
    """The value at an existing path."""
    for part in path.split("."):
        spec = spec[part] if isinstance(spec, Mapping) else getattr(spec, part)
    return spec


def assign(data: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of plain data with the value at `path` replaced. Everything else is shared with the original."""
    head, _, rest = path.partition(".")
    inner = data.get(head)
    if not rest:
        return {**data, head: value}
    if isinstance(inner, str):  # the short form of a spec with default values
        inner = {"kind": inner}
    return {**data, head: assign(inner if isinstance(inner, Mapping) else {}, rest, value)}


def differences(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path and both values of each leaf that differs. Specs of different kinds are reported as a whole."""
    if isinstance(a, Mapping) and isinstance(b, Mapping) and a.get("kind") == b.get("kind"):
        for name in [*a, *(name for name in b if name not in a)]:
            yield from differences(a.get(name), b.get(name), f"{path}.{name}" if path else name)
    elif a != b:
        yield path, a, b


def _exists(spec: Any, path: str) -> bool:
    head, _, rest = path.partition(".")
    if isinstance(spec, Mapping):
        return not rest
    if not isinstance(spec, Spec) or head not in type(spec).model_fields or head == "kind":
        return False
    return not rest or _exists(getattr(spec, head), rest)
