"""The differences between two sessions: settings, code, packages, Python and host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rldsl.spec.paths import differences
from rldsl.store import layout
from rldsl.store.errors import StoreError
from rldsl.store.provenance import differences as provenance_differences
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

SETTINGS = ("trial", "seed", "target")
"""The parts of session.json that are compared."""


class SessionDifference(NamedTuple):
    """One difference: what it belongs to (`settings`, `code`, `package`, ...), its name, and both values."""

    of: str
    name: str
    a: Any
    b: Any


def session_differences(first: SessionDir, second: SessionDir) -> list[SessionDifference]:
    """The settings that differ, then code, packages, Python and host, by the newest provenance of each session."""
    settings = _recorded_differences(first, second)
    origins = provenance_differences(newest_provenance(first.path), newest_provenance(second.path))
    return [*settings, *(SessionDifference(*origin) for origin in origins)]


def _recorded_differences(first: SessionDir, second: SessionDir) -> list[SessionDifference]:
    """The settings that differ; of a record that cannot be read, why."""
    (a, problem_a), (b, problem_b) = _record(first), _record(second)
    if problem_a or problem_b:
        return [SessionDifference("settings", layout.SESSION, problem_a or "can be read", problem_b or "can be read")]
    return setting_differences(a, b)


def _record(session: SessionDir) -> tuple[dict[str, Any], str]:
    try:
        return session.read_session(), ""
    except StoreError as error:
        return {}, str(error).removeprefix(f"{session.session} ")


def setting_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[SessionDifference]:
    """The settings that differ between the contents of two `session.json`."""
    a, b = ({name: record.get(name) for name in SETTINGS} for record in (first, second))
    return [
        SessionDifference("settings", path.removeprefix("trial."), in_a, in_b) for path, in_a, in_b in differences(a, b)
    ]
