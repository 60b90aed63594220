"""Sessions: one seed of one trial, the unit that is trained."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from pydantic import Field, JsonValue

from rldsl.spec.base import ID_LENGTH, SCHEMA, Natural, NoHash, Spec
from rldsl.spec.budget import Budget, Target
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Name, Trial
from rldsl.spec.migrate import migrate_trial

DIRECTORY = re.compile(r"[^/]+-[0-9a-f]{12}/seed-\d+")
"""The last two names of the directory of a session."""


class Override(Spec, frozen=True):
    """A field whose value in the experiment file was overridden on the command line."""

    path: str = Field(description="The field, such as agent.gamma")
    was: JsonValue = Field(description="Value in the experiment file")
    now: JsonValue = Field(description="Value used")
    source: str = Field(description="The command-line option")


class Session(Spec, frozen=True):
    """One seed of one trial, with the name of its experiment and the overrides."""

    experiment: Name = Field(description="Name of the experiment")
    trial: Trial = Field(description="Complete configuration")
    seed: Natural = Field(description="Seed of all random number generators")
    target: Target | None = Field(default=None, description="Target score")
    overrides: tuple[Override, ...] = Field(default=(), description="Differences from the experiment file")

    @property
    def id(self) -> str:
        """`<trial id>-s<seed>`."""
        return session_id(self.trial.id, self.seed)

    @property
    def directory(self) -> str:
        """Its directory, relative to the run directory."""
        return session_directory(self.trial.env.slug, self.trial.agent.kind, self.trial.id, self.seed)

    def record(self) -> dict[str, Any]:
        """The content of `session.json`."""
        facts = {
            "schema": SCHEMA,
            "id": self.id,
            "trial_id": self.trial.id,
            "agent": self.trial.agent.kind,
            "env": self.trial.env.label,
            "frames": self.trial.budget.frames,
        }
        return {**facts, **self.data()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], directory: PurePath | str | None = None) -> Session:
        """The session described by a `session.json`, including those of earlier schema versions.

        Raises `SpecError` unless settings, seed, ids and, if it is given, directory belong together (`check_record`).
        Whoever acts on a record that others could have written makes its session here: a worker, `resume`, `enjoy`,
        a download from the Hub.
        """
        data = {name: record[name] for name in cls.model_fields if name in record}
        data["trial"] = migrate_trial(record.get("trial"), record.get("schema"))
        session = cls.parse(data, root="session.json")
        check_record(record, directory, session)
        return session


def check_record(
    record: Mapping[str, Any], directory: PurePath | str | None = None, session: Session | None = None
) -> None:
    """Raises `SpecError` unless the trial of a `session.json` has its id, and the session has the id of both.

    `directory` is where the record is. A path `<env>/<agent>-<trial id>/seed-<seed>`, relative to the run directory, is
    compared as a whole; of any other path the last two names, if they are those of a session. `session` is what the
    record describes; without it, classes that are not imported are compared by the recorded JSON alone.
    """
    trial, id, seed = record.get("trial_id"), record.get("id"), record.get("seed")
    if not isinstance(trial, str) or type(seed) is not int or id != session_id(trial, seed):
        raise SpecError(f"session.json is damaged: {_short(id)} is not the id of trial {_short(trial)}, seed {seed}")
    if trial != recorded_id(record) and (session is None or trial != session.trial.id):
        now = f", it is {session.trial.id} now" if session else ""
        raise SpecError(f"session.json was changed: its trial is not {_short(trial)} any more{now}")
    if directory is not None:
        _check_directory(record, PurePath(directory), session)


def recorded_id(record: Mapping[str, Any]) -> str | None:
    """The id of the recorded trial in the schema version that it was recorded with."""
    trial = record.get("trial")
    if not isinstance(trial, Mapping) or not isinstance(trial.get("budget"), Mapping):
        return None
    if not isinstance(record.get("schema"), int):
        return None
    hashed = {**_without_hash(trial, Trial), "budget": _without_hash(trial["budget"], Budget)}
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"[{record.get('schema')},{text}]".encode()).hexdigest()[:ID_LENGTH]


def _without_hash(data: Mapping[str, Any], model: type[Spec]) -> dict[str, Any]:
    """Recorded fields without those that are not part of the identity."""
    left_out = {name for name, field in model.model_fields.items() if NoHash in field.metadata}
    return {name: value for name, value in data.items() if name not in left_out}


def _check_directory(record: Mapping[str, Any], directory: PurePath, session: Session | None) -> None:
    agent = session.trial.agent.kind if session else record.get("agent")
    env = session.trial.env.slug if session else directory.parts[-3] if len(directory.parts) > 2 else ""
    expected = session_directory(str(env), str(agent), record["trial_id"], record["seed"])
    whole = not directory.is_absolute() and len(directory.parts) == 3
    named = DIRECTORY.fullmatch("/".join(directory.parts[-2:])) is not None
    given = "/".join(directory.parts[-3:]) if whole else f"{env}/" + "/".join(directory.parts[-2:])
    if (whole or named) and given != expected:
        raise SpecError(f"session.json does not belong into {given}: it is that of {expected}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def session_id(trial: str, seed: int) -> str:
    """The id of a session."""
    return f"{trial}-s{seed}"


def session_directory(env: str, agent: str, trial: str, seed: int) -> str:
    """The directory of a session, relative to the run directory: `<env slug>/<agent kind>-<trial id>/seed-<seed>`."""
    for name in (env, agent):
        if "/" in name or name.startswith("."):
            raise SpecError(f"{name!r} cannot be the name of a directory of runs")
    return f"{env}/{agent}-{trial}/seed-{seed}"
