"""Writes a spec as gin bindings, which `--gin-file` reads back into the same spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rldsl.spec.base import Spec
from rldsl.spec.budget import Seeds
from rldsl.spec.experiment import Experiment
from rldsl.spec.session import Session

HEADER = "# Pass this file to --gin-file to run the same settings again.\n"


def to_gin(spec: Spec, leave_out: frozenset[str] = frozenset()) -> str:
    """Bindings for every field of a spec and its nested specs; `leave_out` names fields of the outermost one."""
    writer = _Writer(Counter(type(node).__name__ for node in _specs(spec)))
    writer.write(spec, "", leave_out)
    return HEADER + "\n" + "\n".join(writer.lines) + "\n"


def session_gin(session: Session) -> str:
    """The bindings of an experiment that consists of this session only."""
    trial, seeds = session.trial, Seeds(count=1, first=session.seed)
    parts = {name: getattr(trial, name) for name in type(trial).model_fields}
    experiment = Experiment(**parts, name=session.experiment, seeds=seeds)
    return to_gin(experiment, leave_out=frozenset({"name", "target", "launcher", "after"}))


def _specs(value: Any) -> Iterator[Spec]:
    if isinstance(value, Spec):
        yield value
        for name in type(value).model_fields:
            yield from _specs(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _specs(item)


class _Writer:
    """Writes outer specs first; a class that occurs more than once gets a scope for each occurrence."""

    def __init__(self, occurrences: Counter[str]) -> None:
        self.occurrences = occurrences
        self.lines: list[str] = []

    def write(self, spec: Spec, scope: str, leave_out: frozenset[str] = frozenset()) -> None:
        pending: list[tuple[Spec, str]] = []
        for name in type(spec).model_fields:
            if name != "kind" and name not in leave_out:
                value = self.value(getattr(spec, name), name, scope, pending)
                self.lines.append(f"{self.selector(spec, scope)}.{name} = {value}")
        self.lines.append("")
        for inner, inner_scope in pending:
            self.write(inner, inner_scope)

    def value(self, value: Any, name: str, scope: str, pending: list[tuple[Spec, str]]) -> str:
        if isinstance(value, Spec):
            inner = f"{scope}_{name}" if scope else name
            pending.append((value, inner))
            return f"@{self.selector(value, inner)}()"
        if isinstance(value, tuple | list):
            parts = [self.value(item, f"{name}_{index}", scope, pending) for index, item in enumerate(value)]
            return f"[{', '.join(parts)}]"
        return repr(value)

    def selector(self, spec: Spec, scope: str) -> str:
        name = type(spec).__name__
        return f"{scope}/{name}" if self.occurrences[name] > 1 else name
