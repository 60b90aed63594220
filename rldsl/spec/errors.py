"""One-sentence errors that name the line, the field, what was given, and what would have been right."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

PACKAGE = Path(__file__).resolve().parent.parent


class SpecError(Exception):
    """A sentence for the person who wrote the experiment; `where` is their `file:line`, if there is one."""

    def __init__(self, sentence: str, where: str | None = None) -> None:
        super().__init__(f"{where}: {sentence}" if where else sentence)
        self.sentence = sentence
        self.where = where


def show_as_sentences() -> None:
    """From here on, a `SpecError` that nobody catches ends the program with its sentence, not with a traceback."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, SpecError):
            print(f"error: {error}", file=sys.stderr)  # noqa: T201
        else:
            before(kind, error, trace)

    sys.excepthook = hook


def nearest(name: str, valid: Iterable[str], most: int = 3) -> list[str]:
    """The valid names that look most like `name`, upper and lower case alike."""
    by_lower = {one.lower(): one for one in valid}
    close = difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=0.6)
    contained = [one for one in by_lower if name.lower() in one and one not in close]
    return [by_lower[one] for one in [*close, *contained][:most]]


def suggestion(name: str, valid: Iterable[str]) -> str:
    """`did you mean ...?` where something is near, otherwise the valid names (the first dozen)."""
    names = list(valid)
    if close := nearest(name, names):
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12])
    return f"valid: {shown}{', ...' if len(names) > 12 else ''}"


def line_of_user() -> str | None:
    """`file:line` of the innermost frame of the stack that belongs neither to rldsl nor to a library."""
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
    """The sentence for a Pydantic error: each problem with its field, what was given and what is valid."""
    title = model.__name__ if root is None else root
    return "; ".join(dict.fromkeys(_problem(detail, title) for detail in error.errors(include_url=False)))


def _problem(detail: ErrorDetails, title: str) -> str:
    path, kind = _dotted(title, detail["loc"]), detail["type"]
    if kind == "missing":
        return f"{path} is missing"
    if kind == "literal_error":
        return _not_listed(path, detail)
    if kind in ("unknown_field", "secret"):  # what must not be written down is not said again
        return f"{path} {detail['msg']}"
    if kind == "value_error" and not detail["loc"]:
        return _message(detail)
    return f"{path} {_message(detail)}, got {_given(detail['input'])}"


def _not_listed(path: str, detail: ErrorDetails) -> str:
    given = detail["input"]
    expected = [one.strip().strip("'") for one in str(detail["ctx"]["expected"]).replace(" or ", ", ").split(",")]
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
