"""One-sentence errors that name the user's line, the field, the given value and the valid ones."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

PACKAGE = Path(__file__).resolve().parent.parent


class SpecError(Exception):
    """A mistake in an experiment. Its text is one sentence, after the user's `file:line` where that is known.

    Uncaught in an experiment file that was started as `python FILE`, it is printed as that sentence, without a
    traceback. Everywhere else (another program, a notebook, a test) it is an exception like any other.
    """

    def __init__(self, sentence: str, where: str | None = None) -> None:
        super().__init__(f"{where}: {sentence}" if where else sentence)
        self.sentence = sentence
        self.where = where
        if is_experiment_file(sys.modules.get("__main__")):
            print_as_sentence()


SpecError.__module__ = "rldsl"  # its public name, which a traceback shows


def is_experiment_file(module: ModuleType | None) -> bool:
    """Whether a module is a file that has imported `rldsl.main`, as every experiment file does."""
    if module is None or not hasattr(module, "__file__"):
        return False
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    return any((function.__module__, function.__name__) == ("rldsl.cli", "main") for function in functions)


def print_as_sentence() -> None:
    """Makes Python print an uncaught `SpecError` as `error: ...`; other exceptions are printed as before."""
    if not isinstance(sys.excepthook, _SentenceHook):
        sys.excepthook = _SentenceHook(sys.excepthook)


class _SentenceHook:
    def __init__(self, previous: Callable[..., Any]) -> None:
        self.previous = previous

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, SpecError):
            print(f"error: {error}", file=sys.stderr)  # noqa: T201
        else:
            self.previous(kind, error, trace)


def nearest(name: str, valid: Iterable[str], most: int = 3) -> list[str]:
    """The valid names that are most similar to `name`, ignoring case."""
    by_lower = {candidate.lower(): candidate for candidate in valid}
    close = difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=0.6)
    containing = [lower for lower in by_lower if name.lower() in lower and lower not in close]
    return [by_lower[lower] for lower in [*close, *containing][:most]]


def suggestion(name: str, valid: Iterable[str]) -> str:
    """`did you mean ...?` if a valid name is similar, otherwise the valid names (the first dozen)."""
    names = list(valid)
    if close := nearest(name, names):
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12])
    return f"valid: {shown}{', ...' if len(names) > 12 else ''}"


def line_of_user() -> str | None:
    """`file:line` of the innermost stack frame that is neither in rldsl nor in a library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<") and not _foreign(Path(file)):
            return f"{_short(Path(file))}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _foreign(file: Path) -> bool:
    if PACKAGE in file.parents:
        return True
    return "site-packages" in file.parts or Path(sys.prefix, "bin") in file.parents or _standard_library(file)


def _standard_library(file: Path) -> bool:
    return Path(difflib.__file__).resolve().parent in file.resolve().parents


def _short(file: Path) -> str:
    try:
        return str(file.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def from_validation(error: ValidationError, model: type[BaseModel], root: str | None = None) -> str:
    """The sentence for a Pydantic error: each problem with its field, the given value and what is valid."""
    title = model.__name__ if root is None else root
    return "; ".join(dict.fromkeys(_problem(detail, title) for detail in error.errors(include_url=False)))


def _problem(detail: ErrorDetails, title: str) -> str:
    path, kind = _dotted(title, detail["loc"]), detail["type"]
    if kind == "missing":
        return f"{path} is missing"
    if kind == "literal_error":
        return _not_listed(path, detail)
    if kind in ("unknown_field", "secret"):  # a secret must not be printed
        return f"{path} {detail['msg']}"
    if kind == "value_error" and not detail["loc"]:
        return _message(detail)
    return f"{path} {_message(detail)}, got {_given(detail['input'])}"


def _not_listed(path: str, detail: ErrorDetails) -> str:
    given = detail["input"]
    expected = [name.strip().strip("'") for name in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(",")]
    return f"{path} has no {_given(given)}; {suggestion(str(given), expected)}"


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    message = detail["msg"]
    return message.replace("Input should", "should", 1) if message.startswith("Input should") else message


def _dotted(title: str, location: Sequence[int | str]) -> str:
    return ".".join([*([title] if title else []), *(str(part) for part in location)])


def _given(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
