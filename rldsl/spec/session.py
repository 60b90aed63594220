"""Sessions: one seed of one trial, the unit that is trained."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue

from rldsl.spec.base import SCHEMA, Natural, Spec
from rldsl.spec.budget import Target
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Name, Trial
from rldsl.spec.migrate import migrate_trial


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
    def from_record(cls, record: dict[str, Any]) -> Session:
        """The session described by a `session.json`, including those of earlier schema versions."""
        data = {name: record.get(name) for name in cls.model_fields}
        data["trial"] = migrate_trial(record.get("trial"), record.get("schema"))
        return cls.parse(data, root="session.json")


def session_id(trial: str, seed: int) -> str:
    """The id of a session."""
    return f"{trial}-s{seed}"


def session_directory(env: str, agent: str, trial: str, seed: int) -> str:
    """The directory of a session, relative to the run directory: `<env slug>/<agent kind>-<trial id>/seed-<seed>`."""
    for name in (env, agent):
        if "/" in name or name.startswith("."):
            raise SpecError(f"{name!r} cannot be the name of a directory of runs")
    return f"{env}/{agent}-{trial}/seed-{seed}"
