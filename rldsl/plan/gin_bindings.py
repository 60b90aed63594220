"""gin-config as a source of overrides: gin parses, with macros, includes and references; the specs validate.

Every spec model is registered with gin under its own name, as a function that returns its arguments as plain data.
A binding without a scope (`PPO.gamma = 0.995`) changes every such model of the plan; one with a scope belongs to the
reference that names the scope (`PPO.lr = @decay/Linear()`). Import statements are refused: a settings file is data.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Any

import gin
from gin import config_parser
from pydantic import TypeAdapter, ValidationError

from rldsl.plan.overrides import Assignment
from rldsl.spec.base import Kind, Spec
from rldsl.spec.errors import SpecError, from_validation, suggestion
from rldsl.spec.experiment import Experiment
from rldsl.spec.paths import nodes
from rldsl.spec.paths import parts as experiment_parts

GIN_ERRORS = (SyntaxError, TokenError, ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError)
"""What gin raises for a text that it cannot parse or evaluate; it documents none of them."""


@dataclass(frozen=True)
class Binding:
    """One statement of a gin text; a macro has no `field`."""

    scope: str
    model: str
    field: str
    where: str
    mentions: frozenset[str]

    @property
    def text(self) -> str:
        name = f"{self.model}.{self.field}" if self.field else self.model
        return f"{self.scope}/{name}" if self.scope else name


@dataclass
class GinBindings:
    """The bindings of one `--gin` or `--gin-file`."""

    bindings: list[Binding]
    values: dict[tuple[str, str], Any]
    made: set[tuple[str, str]]
    used: set[Binding] = field(default_factory=set)

    @classmethod
    def from_text(cls, text: str, source: str) -> GinBindings:
        """Parses `--gin` text."""
        return cls._parse(text, source, None)

    @classmethod
    def from_file(cls, path: Path) -> GinBindings:
        """Parses a `--gin-file`; includes are found beside it or from the working directory."""
        return cls._parse(_read(path, f"--gin-file {path}"), f"--gin-file {path}", path)

    @classmethod
    def _parse(cls, text: str, source: str, path: Path | None) -> GinBindings:
        bindings = list(_statements(text, source, path))
        macros = {one.text for one in bindings if not one.field}
        for binding in bindings:
            _check_name(binding)
            _check_mentions(binding, macros)
        made: set[tuple[str, str]] = set()
        values = _evaluate(bindings, text, source, path, made)
        return cls(bindings, values, made)

    def assignments(self, experiment: Experiment) -> list[Assignment]:
        assignments, parts = [], dict(experiment_parts(experiment))
        for one in self._unscoped("Experiment"):
            assignments.append(self._assignment(one, one.field))
            parts[one.field] = _validated(one, self.values[one.model, one.field])
        for name, part in parts.items():
            for path, node in nodes(part, name) if isinstance(part, Spec) else ():
                bindings = self._unscoped(type(node).__name__)
                assignments += [self._assignment(one, f"{path}.{one.field}") for one in bindings]
        return assignments

    def _assignment(self, binding: Binding, path: str) -> Assignment:
        self.used.add(binding)
        return Assignment(path, self.values[binding.model, binding.field], binding.where)

    def check_used(self) -> None:
        mentioned = frozenset[str]().union(*(one.mentions for one in self.bindings))
        texts = {one.text for one in self.used}
        for one in self.bindings:
            by_reference = any(model == one.model and _inside(scope, one.scope) for scope, model in self.made)
            by_macro = not one.field and f"%{one.text}" in mentioned
            if one.text not in texts and not by_reference and not by_macro:
                raise SpecError(f"{one.where}: {one.text} is used by nothing in the plan")

    def _unscoped(self, model: str) -> Iterator[Binding]:
        """The bindings that change every `model` of the plan; as in gin, a later one replaces an earlier one."""
        chosen = {one.field: one for one in self.bindings if one.model == model and one.field and not one.scope}
        return iter(chosen.values())


def _validated(binding: Binding, value: Any) -> Any:
    """A part of an experiment that a binding replaces as a whole."""
    try:
        annotation: Any = Experiment.model_fields[binding.field].annotation
        return TypeAdapter(annotation).validate_python(value)
    except ValidationError as error:
        raise SpecError(f"{binding.where}: {from_validation(error, Experiment, binding.field)}") from None


def _inside(scope: str, outer: str) -> bool:
    return not outer or scope == outer or scope.startswith(f"{outer}/")


class _Mentions(config_parser.ParserDelegate):  # type: ignore[misc]
    """Collects the references and macros that a statement mentions."""

    def __init__(self) -> None:
        self.mentions: list[str] = []

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> str:
        self.mentions.append(f"@{scoped_configurable_name}")
        return f"@{scoped_configurable_name}{'()' if evaluate else ''}"

    def macro(self, macro_name: str) -> str:
        self.mentions.append(f"%{macro_name}")
        return f"%{macro_name}"


def _statements(text: str, source: str, path: Path | None, includers: tuple[Path, ...] = ()) -> Iterator[Binding]:
    """The bindings of a text and of the files that it includes, in order."""
    delegate = _Mentions()
    parser = config_parser.ConfigParser(text, delegate)
    while (statement := _next(parser, source)) is not None:
        where = f"{path}:{statement.location.line_num}" if path else source
        if isinstance(statement, config_parser.ImportStatement):
            raise SpecError(f"{where}: import {statement.module} is refused: a settings file runs no code")
        if isinstance(statement, config_parser.IncludeStatement):
            included = _find(statement.filename, path, where)
            files = (*includers, *([path.resolve()] if path else []))
            if included.resolve() in files:
                raise SpecError(f"{where}: {included} includes itself")
            yield from _statements(_read(included, where), source, included, files)
        elif isinstance(statement, config_parser.BindingStatement):
            yield Binding(statement.scope, statement.selector, statement.arg_name, where, frozenset(delegate.mentions))
            delegate.mentions.clear()


def _next(parser: Any, source: str) -> Any:
    try:
        return parser.parse_statement()
    except GIN_ERRORS as error:
        raise SpecError(f"{source}: not valid gin: {_reason(error)}") from None


def _check_name(binding: Binding) -> None:
    if not binding.field:
        return
    model = Spec.models.get(binding.model)
    if model is None:
        raise SpecError(f"{binding.where}: there is no {binding.model}; {suggestion(binding.model, Spec.models)}")
    fields = [name for name in model.model_fields if name != "kind"]
    if binding.field not in fields:
        hint = suggestion(binding.field, fields)
        raise SpecError(f"{binding.where}: {binding.model} has no field {binding.field!r}; {hint}")


def _check_mentions(binding: Binding, macros: set[str]) -> None:
    for mention in sorted(binding.mentions):
        sign, name = mention[0], mention[1:].rpartition("/")[2] if mention[0] == "@" else mention[1:]
        valid = Spec.models if sign == "@" else macros
        if name not in valid:
            hint = suggestion(name, valid) if valid else "no macro is defined"
            raise SpecError(f"{binding.where}: {mention} names nothing; {hint}")


def _evaluate(
    bindings: list[Binding], text: str, source: str, path: Path | None, made: set[tuple[str, str]]
) -> dict[tuple[str, str], Any]:
    """Lets gin resolve macros and references. Its bindings are global, so they are cleared before and after."""
    _register(made)
    gin.clear_config()
    try:
        with gin.unlock_config():
            _parse_with_gin(text, path)
            models = {one.model for one in bindings if one.field and not one.scope}
            return {(model, name): value for model in models for name, value in gin.get_bindings(model).items()}
    except GIN_ERRORS as error:
        raise SpecError(f"{source}: {_reason(error)}") from None
    finally:
        gin.clear_config()


def _reason(error: Exception) -> str:
    """What gin says, in one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply, or refers to itself"
    if token := re.search(r"Failed to parse token '(.*)' \(line (\d+)\)", str(error)):
        return f"{token[1]} is not a value; text needs quotes (line {token[2]})"
    return " ".join(str(error).split())[:300] or type(error).__name__


def _parse_with_gin(text: str, path: Path | None) -> None:
    if path is None:
        gin.parse_config(text)
        return
    gin.add_config_file_search_path(str(path.parent))
    gin.parse_config_file(str(path))


_calls: list[set[tuple[str, str]]] = []


def _register(made: set[tuple[str, str]]) -> None:
    """Registers every spec model that gin does not know yet; calls are recorded in `made`."""
    _calls[:] = [made]
    for name, model in Spec.models.items():
        if _registered.get(name) is not model:
            with gin.unlock_config():
                gin.enter_interactive_mode()
                gin.external_configurable(_maker(model), name=name, module="rldsl")
                gin.exit_interactive_mode()
            _registered[name] = model


_registered: dict[str, type[Spec]] = {}


def _maker(model: type[Spec]) -> Callable[..., dict[str, Any]]:
    """The function that gin calls for `@Model()`: it returns plain data, which the receiving spec validates."""

    def make(**values: Any) -> dict[str, Any]:
        _calls[0].add((gin.current_scope_str(), model.__name__))
        kind = {"kind": model.model_fields["kind"].default} if issubclass(model, Kind) else {}
        return {**kind, **values}

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in model.model_fields if name != "kind"
    ]
    make.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    make.__name__ = re.sub(r"\W", "_", model.__name__)
    return make


def _find(name: str, includer: Path | None, where: str) -> Path:
    for folder in ([includer.parent] if includer else []) + [Path()]:
        if os.path.isfile(folder / name):  # noqa: PTH113 (never raises, whatever the name is)
            return folder / name
    raise SpecError(f"{where}: there is no file {name} to include")


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise SpecError(f"{source}: cannot read {path}: {reason}") from None
