"""One-sentence errors that name the user's line, the field, the given value and the valid ones."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

LONGEST = 1200
"""Characters of an error message."""
BARE = {"Target": "a number"}
"""Specs that are given as a bare value."""
EXIT_CODE = 2
"""Of commands that cannot start: mistakes in options or in the experiment file, files that cannot be read."""
PACKAGE = Path(__file__).resolve().parent.parent


class SpecError(Exception):
    """A mistake in an experiment. Its text is one sentence, after the user's `file:line` where that is known.

    Uncaught in an experiment file that was started as `python FILE`, it is printed as that sentence, without a
    traceback. Everywhere else (another program, a notebook, a test) it is an exception like any other.
    """

    def __init__(self, sentence: str, where: str | None = None) -> None:
        sentence = one_line(sentence)
        super().__init__(f"{where}: {sentence}" if where else sentence)
        self.sentence = sentence
        self.where = where
        if is_experiment_file(sys.modules.get("__main__")):
            print_as_sentence()


def one_line(text: str) -> str:
    """A text without line breaks and control characters; the middle of a very long one is left out."""
    shown = text if text.isprintable() else "".join(mark if mark.isprintable() else " " for mark in text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]} ... {shown[-LONGEST // 2 :]}"


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
            raise SystemExit(EXIT_CODE)  # Python's own exit code of an uncaught exception means a failed session here
        self.previous(kind, error, trace)


def nearest(name: str, valid: Iterable[str], most: int = 3) -> list[str]:
    """The valid names that are most similar to `name`, ignoring case."""
    by_lower = {candidate.lower(): candidate for candidate in valid}
    close = difflib.get_close_matches(name.lower(), by_lower, n=most, cutoff=0.6)
    containing = [lower for lower in by_lower if name.lower() in lower and lower not in close]
    return [by_lower[lower] for lower in [*close, *containing][:most]]


ALIASES: dict[str, tuple[str, ...]] = {
    "learning_rate": ("lr",),
    "n_steps": ("rollout", "n_step"),
    "num_steps": ("rollout",),
    "batch_size": ("minibatch", "batch"),
    "minibatch_size": ("minibatch",),
    "buffer_size": ("buffer",),
    "gae_lambda": ("lam",),
    "ent_coef": ("entropy", "alpha"),
    "vf_coef": ("value_coef",),
    "clip_range": ("clip",),
    "clip_coef": ("clip",),
    "n_epochs": ("epochs",),
    "update_epochs": ("epochs",),
    "exploration_fraction": ("epsilon",),
    "target_update_interval": ("target_every",),
    "target_network_frequency": ("target_every",),
    "gradient_steps": ("updates_per_frame",),
    "n_envs": ("num_envs",),
    "policy_kwargs": ("net",),
    "total_timesteps": ("frames",),
}
"""Names of Stable-Baselines3 and CleanRL, and ours, where they are not similar."""


def suggestion(name: str, valid: Iterable[str]) -> str:
    """`did you mean ...?` if a valid name is similar or means the same elsewhere, otherwise the valid names."""
    names = list(valid)
    if close := [ours for ours in ALIASES.get(name, ()) if ours in names][:1]:
        return f"did you mean {close[0]}?"
    if close := nearest(name, names):
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12])
    return f"valid: {shown}{', ...' if len(names) > 12 else ''}"


def line_of_user() -> str | None:
    """`file:line` of the innermost stack frame that is neither in rldsl nor in a library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<") and not _foreign(file):
            return f"{_short(file, Path.cwd())}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def line_in(trace: TracebackType | None) -> str | None:
    """`file:line` of the innermost frame of a traceback that is neither in rldsl nor in a library."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(trace)]
    own = [(file, line) for file, line in lines if not file.startswith("<") and not _foreign(file)]
    return f"{_short(own[-1][0], Path.cwd())}:{own[-1][1]}" if own else None


@cache
def _foreign(name: str) -> bool:
    file = Path(name)
    if PACKAGE in file.parents:
        return True
    return "site-packages" in file.parts or Path(sys.prefix, "bin") in file.parents or _standard_library(file)


def _standard_library(file: Path) -> bool:
    return Path(difflib.__file__).resolve().parent in file.resolve().parents


@cache
def _short(name: str, directory: Path) -> str:
    try:
        return str(Path(name).resolve().relative_to(directory))
    except ValueError:
        return name


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
    if detail["type"] == "model_type":
        name = detail["ctx"]["class_name"]
        return f"should be {BARE.get(name, f'a {name} or its fields')}"
    return message.replace("Input should", "should", 1) if message.startswith("Input should") else message


def _dotted(title: str, location: Sequence[int | str]) -> str:
    return ".".join([*([title] if title else []), *(str(part) for part in location)])


def _given(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
