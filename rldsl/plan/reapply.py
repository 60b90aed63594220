"""The trials of an experiment with the overrides of a session: whether a session belongs to an experiment file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rldsl.plan.expand import count, expand
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.paths import assign
from rldsl.spec.session import Override, Session

MOST_COMPARED = 20_000
"""Sessions of a plan, and trials of an experiment, up to which sessions with overrides are looked for."""


class Reapplied:
    """An experiment, to which the overrides of sessions are applied; each set of them once."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._trials: dict[str, dict[str, Trial]] = {}

    def session(self, session: Session) -> Session | None:
        """A session as the experiment declares it now; None if it is not one of this experiment.

        It has its own settings where these are part of the identity or overridden; the others are those of the
        experiment.
        """
        overrides = [one for one in session.overrides if _is_setting(one)]
        key = json.dumps([(one.path, one.now) for one in overrides])
        if key not in self._trials:
            self._trials[key] = self._expanded(session, overrides)
        if (trial := self._trials[key].get(session.trial.id)) is None:
            return None
        own_target = any(_head(one) == "target" for one in session.overrides)
        return session.with_(trial=trial, target=session.target if own_target else self.experiment.target)

    def _expanded(self, session: Session, overrides: list[Override]) -> dict[str, Trial]:
        """The trials by their ids; none if the experiment cannot have these overrides."""
        data, trained = self.experiment.data(), session.trial.data()
        for one in sorted(overrides, key=lambda one: one.path.count(".")):
            data = assign(data, one.path, one.now) if _head(one) == "search" else _taken(data, trained, one.path)
        try:
            experiment = Experiment.parse(data)
            if experiment.sampled or count(experiment) > MOST_COMPARED:
                return {}
            return {planned.trial.id: planned.trial for planned in expand(experiment)}
        except SpecError:
            return {}


def _is_setting(one: Override) -> bool:
    """Whether trials depend on a field: they do not on seeds, target and launcher."""
    return _head(one) == "search" or _head(one) in Trial.model_fields


def _head(one: Override) -> str:
    return one.path.partition(".")[0]


def _taken(data: Mapping[str, Any], source: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A copy of plain data with what `source` has at `path`; without it if `source` leaves it out, as a default."""
    head, _, rest = path.partition(".")
    if head not in source:
        return {name: value for name, value in data.items() if name != head}
    mine, theirs = data.get(head), source[head]
    if not rest or not isinstance(theirs, Mapping):
        return {**data, head: theirs}
    return {**data, head: _taken(mine if isinstance(mine, Mapping) else {}, theirs, rest)}
