"""A plan file: one JSON document, written one trial per line, so that plans of any size can be streamed.

`read_plan` is the only reader. It verifies the checksum, the schema version, and that every trial hashes to its id.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic import Field as PydanticField

from rldsl.spec.base import SCHEMA, Natural
from rldsl.spec.errors import SpecError, from_validation
from rldsl.spec.experiment import Trial
from rldsl.spec.json_text import parse_object
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError, writing
from rldsl.store.plan_parts import Part, Row

Model = TypeVar("Model", bound=BaseModel)

PLANS = ".plans"
"""The folder of frozen plans in a run directory."""
FORMAT = "rldsl.plan"
OPENING = ', "trials": [\n'
CLOSING = re.compile(rb'\], "sha256": "([0-9a-f]{64})"\}\n\Z')
LONGEST_CLOSING = 100
BLOCK = 1 << 20


def plan_header(parts: Iterable[Part]) -> dict[str, Any]:
    """The document without its trials."""
    return {"schema": SCHEMA, "experiments": [part.data() for part in parts]}


def write_plan(out: TextIO, header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> None:
    """Writes the document to an open stream, a trial at a time, and then the checksum of what it wrote."""
    digest = hashlib.sha256()
    for text in _document(header, trials):
        out.write(text)
        digest.update(text.encode())
    out.write(f'], "sha256": "{digest.hexdigest()}"}}\n')


def _document(header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    yield json.dumps({"format": FORMAT, **header}).removesuffix("}") + OPENING
    separator = ""
    for trial in trials:
        yield separator + json.dumps(trial)
        separator = ",\n"
    yield "\n"


def save_plan(path: Path, header: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> None:
    """Writes the document to a temporary file and renames it; if anything fails, an earlier file stays as it was."""
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


class _Header(BaseModel, frozen=True):
    """A plan file without its trials."""

    format: Literal["rldsl.plan"]
    schema_: int = PydanticField(alias="schema")
    experiments: tuple[Part, ...]


class _Trial(BaseModel, frozen=True):
    """A trial in a plan file."""

    experiment: str
    id: str
    differs: dict[str, Any]
    seeds: tuple[Natural, ...]
    spec: dict[str, Any]


@dataclass(frozen=True)
class PlanFile:
    """An open plan file, of the schema version of this package, with the right checksum."""

    path: Path
    experiments: Mapping[str, Part]
    trials: Callable[[], Iterable[dict[str, Any]]]

    def parts(self) -> tuple[Part, ...]:
        """The experiments of the plan."""
        return tuple(self.experiments.values())

    def rows(self, only: Collection[str] | None = None) -> Iterator[Row]:
        """The trials one at a time, each verified as it is read; trials whose id is not in `only` are skipped."""
        for data in self.trials():
            if only is None or data.get("id") in only:
                yield self._row(_valid(self.path, _Trial, data))

    def _row(self, data: _Trial) -> Row:
        trial = Trial.parse(data.spec, root=f"{self.path}, trial {data.id}")
        if trial.id != data.id:
            raise SpecError(f"{self.path}: trial {data.id} was changed by hand, it is {trial.id} now")
        part = self.experiments.get(data.experiment)
        if part is None:
            raise StoreError(f"the plan {self.path} is damaged: it has no experiment {data.experiment!r}")
        return Row(data.experiment, trial, trial.id, data.seeds, data.differs, part.target, part.overrides)


def read_plan(path: Path, *, launchers: bool = True) -> PlanFile:
    """Opens a plan file; refuses one that was changed since it was written, and one of another schema version.

    Without `launchers`, those of the plan need not be known: a worker does not import the profile of a user's own.
    """
    try:
        with path.open("rb") as file:
            first = file.readline()
            streamed = first.endswith(OPENING.encode())
            if streamed:
                _refuse_changed(path, file)
    except OSError as error:
        raise StoreError(f"cannot read the plan {path}: {(error.strerror or str(error)).lower()}") from error
    header, trials = (_parsed(path, first + b"]}"), lambda: _streamed(path)) if streamed else _laid_out_anew(path)
    if header.get("format") == FORMAT and header.get("schema") != SCHEMA:
        schema = str(header.get("schema"))[:20]
        raise SpecError(f"the plan {path} has schema {schema}, this version has {SCHEMA}: make a new plan")
    if not launchers and isinstance(header.get("experiments"), list):
        known = [{**one, "launcher": Local().data()} for one in header["experiments"] if isinstance(one, dict)]
        header = {**header, "experiments": known}
    experiments = _valid(path, _Header, header).experiments
    return PlanFile(path, {part.name: part for part in experiments}, trials)


def _refuse_changed(path: Path, file: BinaryIO) -> None:
    """Compares a plan file, as `write_plan` writes it, with its checksum."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LONGEST_CLOSING))
    closing = CLOSING.search(file.read())
    if closing is None:
        raise StoreError(f"the plan {path} is cut short, or has no checksum: make it again with `plan --out FILE`")
    file.seek(0)
    digest, left = hashlib.sha256(), size - len(closing[0])
    while left > 0 and (block := file.read(min(left, BLOCK))):
        digest.update(block)
        left -= len(block)
    if digest.hexdigest() != closing[1].decode():
        raise _changed(path)


def _laid_out_anew(path: Path) -> tuple[dict[str, Any], Callable[[], Iterable[dict[str, Any]]]]:
    """The header and trials of a plan that was formatted by another program: the same content, in another layout."""
    document = _parsed(path, path.read_bytes())
    trials, checksum = document.pop("trials", None), document.pop("sha256", None)
    if document.get("format") != FORMAT or not isinstance(trials, list):
        raise StoreError(f"{path} is not a plan: `plan --out FILE` writes one")
    header = {name: value for name, value in document.items() if name != "format"}
    digest = hashlib.sha256("".join(_document(header, trials)).encode())
    if digest.hexdigest() != checksum or not all(isinstance(one, dict) for one in trials):
        raise _changed(path)
    return document, lambda: trials


def _changed(path: Path) -> StoreError:
    return StoreError(f"the plan {path} was changed by hand or damaged: its checksum does not fit, make a new one")


def _streamed(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        next(file, None)
        for line in file:
            if line.startswith(b"]"):
                return
            if line.strip():
                yield _parsed(path, line.rstrip().removesuffix(b","))


def _parsed(path: Path, text: bytes) -> dict[str, Any]:
    try:
        return parse_object(text)
    except ValueError as error:
        raise StoreError(f"{path} is not a plan: {str(error)[:200]}") from error


def _valid(path: Path, model: type[Model], data: Any) -> Model:
    """Fields that are missing or of another type are one sentence."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = from_validation(error, model, "").partition(";")[0]
        raise StoreError(f"the plan {path} is damaged: {problem}") from None
    except RecursionError:
        raise StoreError(f"the plan {path} is damaged: it is nested too deeply") from None
