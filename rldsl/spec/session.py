"""A session: one seed of one trial, the unit that runs."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue

from rldsl.spec.base import SCHEMA, Natural, Spec
from rldsl.spec.budget import Target
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Name, Trial
from rldsl.spec.migrate import migrate_trial


class Override(Spec, frozen=True):
    """A field that a command changed against what the experiment file says."""

    path: str = Field(description="The field, such as agent.gamma")
    was: JsonValue = Field(description="What the file says")
    now: JsonValue = Field(description="What runs")
    source: str = Field(description="The option that said so")


class Session(Spec, frozen=True):
    """One seed of one trial, with what it is called and what was overridden."""

    experiment: Name = Field(description="What it is called")
    trial: Trial = Field(description="What it does")
    seed: Natural = Field(description="The root of all its random numbers")
    target: Target | None = Field(default=None, description="The score to reach")
    overrides: tuple[Override, ...] = Field(default=(), description="What differs from the experiment file")

    @property
    def id(self) -> str:
        """The trial's id and the seed."""
        return session_id(self.trial.id, self.seed)

    @property
    def directory(self) -> str:
        """Its directory, relative to the run directory."""
        return session_directory(self.trial.env.slug, self.trial.agent.kind, self.trial.id, self.seed)

    def record(self) -> dict[str, Any]:
        """What `session.json` holds."""
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
    def from_record(cls, record: dict[str, Any]) -> Session:
        """The session that a `session.json` describes, also one of an earlier schema version."""
        data = {name: record.get(name) for name in cls.model_fields}
        data["trial"] = migrate_trial(record.get("trial"), record.get("schema"))
        return cls.parse(data, root="session.json")


def session_id(trial: str, seed: int) -> str:
    """How a session is called everywhere."""
    return f"{trial}-s{seed}"


def session_directory(env: str, agent: str, trial: str, seed: int) -> str:
    """The directory of a session, relative to the run directory: `<env slug>/<agent kind>-<trial id>/seed-<seed>`."""
    for name in (env, agent):
        if "/" in name or name.startswith("."):
            raise SpecError(f"{name!r} cannot be the name of a directory of runs")
    return f"{env}/{agent}-{trial}/seed-{seed}"
