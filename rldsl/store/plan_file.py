"""A plan as a file: one JSON document, laid out one trial a line, so that plans of any size are streamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from rldsl.store.errors import StoreError, writing

FORMAT = "rldsl.plan"
OPENING = ', "trials": [\n'
CLOSING = "]}"


def write_plan(out: TextIO, header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> None:
    """Writes the document to an open stream, a trial at a time."""
    out.write(json.dumps({"format": FORMAT, **header}).removesuffix("}") + OPENING)
    separator = ""
    for trial in trials:
        out.write(separator + json.dumps(trial))
        separator = ",\n"
    out.write(f"\n{CLOSING}\n")


def save_plan(path: Path, header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> None:
    """Writes the document beside and renames it; whatever fails, the old file stands and nothing is left beside it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            with temporary.open("x") as out:
                write_plan(out, header, trials)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def read_plan(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The header of a plan, and its trials one at a time."""
    try:
        with path.open() as file:
            first = file.readline()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise StoreError(f"cannot read the plan {path}: {str(reason).lower()}") from error
    if first.endswith(OPENING):
        return _checked(path, _parsed(path, first + CLOSING)), _streamed(path)
    whole = _checked(path, _parsed(path, path.read_text()))
    return whole, iter(whole["trials"])


def _streamed(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        next(file)
        for line in file:
            if line.strip() == CLOSING:
                return
            yield _parsed(path, line.rstrip().removesuffix(","))
    raise StoreError(f"the plan {path} is cut short")


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise StoreError(f"{path} is not a plan: {error}") from error
    return value if isinstance(value, dict) else {}


def _checked(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    if document.get("format") != FORMAT or not isinstance(document.get("trials"), list):
        raise StoreError(f"{path} is not a plan: `plan --out FILE` writes one")
    return document
