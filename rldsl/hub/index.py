"""index.jsonl of a repository: a header, and a line for each session.

Listing, and finding out what changed, read only this file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rldsl.hub.remote_paths import session_of
from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError
from rldsl.maths.scores import total_reward_ma
from rldsl.spec.json_text import parse_json
from rldsl.store.errors import StoreError
from rldsl.store.layout import seed_of, trial_of
from rldsl.store.metrics import last_row, read_metrics
from rldsl.store.session_dir import SessionDir

INDEX = "index.jsonl"
FORMAT = "rldsl.index"


@dataclass(frozen=True)
class IndexRow:
    """A session in a repository."""

    directory: str
    """Its path, in the repository as in a run directory."""
    experiment: str
    env: str
    agent: str
    state: str
    frame: int
    frames: int
    """The budget."""
    score: float | None
    """The last `episode_return_ma`."""
    target: float | None
    seconds: float
    size: int
    """Bytes of all files."""
    digest: str
    """The SHA-256 of its SHA256SUMS."""
    files: tuple[str, ...]
    """The names of its files."""
    audited: bool = False
    """Whether `graduate` put it here."""

    @property
    def trial(self) -> str:
        return str(trial_of(self.directory.split("/")[1]))

    @property
    def seed(self) -> int:
        return seed_of(self.directory.split("/")[2]) or 0

    @property
    def id(self) -> str:
        return f"{self.trial}-s{self.seed}"

    @property
    def paths(self) -> list[str]:
        """Its files, by their paths in the repository."""
        return [f"{self.directory}/{name}" for name in self.files]


@dataclass
class Index:
    """What a repository contains."""

    rows: dict[str, IndexRow] = field(default_factory=dict)
    """The sessions, by directory."""
    benchmark: str = ""
    """The benchmark table of the results, as Markdown; empty without results."""

    def data(self) -> bytes:
        """The file, sorted by directory."""
        rows = [asdict(self.rows[name]) for name in sorted(self.rows)]
        lines = [{"format": FORMAT, "benchmark": self.benchmark}, *rows]
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def row_of(directory: str, session: SessionDir, size: int, digest: str, files: Iterable[str]) -> IndexRow:
    """The row of a session on disk."""
    record = session.read_session()
    state = session.read_state(session.recorded()).with_log_point(last_row(session.metrics) or {})
    returns = read_metrics(session.metrics).get("episode_return", [])
    score = total_reward_ma([value for value in returns if value is not None])
    return IndexRow(
        directory=directory,
        experiment=state.experiment,
        env=str(record.get("env", "?")),
        agent=str(record.get("agent", "?")),
        state="resume" if state.state == "running" else state.state,
        frame=state.frame,
        frames=state.frames,
        score=score if math.isfinite(score) else None,
        target=state.target,
        seconds=round(state.seconds, 1),
        size=size,
        digest=digest,
        files=tuple(sorted(files)),
    )


def read_index(data: bytes, where: str) -> Index:
    """The index in a file; raises `StoreError` if it is damaged."""
    lines = data.decode("utf-8", "replace").splitlines()
    try:
        header = parse_json(lines[0])
        if header["format"] != FORMAT or not isinstance(header["benchmark"], str):
            raise ValueError("no index")
        rows = [_parse(parse_json(line)) for line in lines[1:]]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise StoreError(f"{INDEX} of {where} is damaged: {type(error).__name__} {error}") from error
    return Index({row.directory: row for row in rows}, header["benchmark"])


def _parse(data: Any) -> IndexRow:
    """A row, whose values are of the declared types, and whose directory is one of a session."""
    values = {field.name: data[field.name] for field in fields(IndexRow) if field.name in data}
    row = IndexRow(**{**values, "files": tuple(values["files"])})
    texts = (row.directory, row.experiment, row.env, row.agent, row.state, row.digest, *row.files)
    whole = (row.frame, row.frames, row.size)
    numbers = (*whole, row.seconds, *(value for value in (row.score, row.target) if value is not None))
    if not all(isinstance(text, str) for text in texts) or not all(type(number) is int for number in whole):
        raise TypeError("a value of another type")
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise TypeError("a value that is no number")
    if session_of(f"{row.directory}/x") != row.directory or type(row.audited) is not bool:
        raise ValueError("no directory of a session")
    return row


def open_index(repository: Repository) -> tuple[Index, str]:
    """The index of a repository and the commit that it was read at."""
    found = repository.read(INDEX)
    if found is None:
        if not repository.exists():
            raise HubError(f"there is no {str(repository).removeprefix('the ')}, or it is private")
        raise StoreError(f"{repository} has no {INDEX}: `rldsl push` writes it")
    return read_index(found.data, str(repository)), found.revision
