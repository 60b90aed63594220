"""The differences between two sessions: settings, code, packages, Python and host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rldsl.spec.paths import differences
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
    settings = setting_differences(first.read_session(), second.read_session())
    origins = provenance_differences(newest_provenance(first.path), newest_provenance(second.path))
    return [*settings, *(SessionDifference(*origin) for origin in origins)]


def setting_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[SessionDifference]:
    """The settings that differ between the contents of two `session.json`."""
    a, b = ({name: record.get(name) for name in SETTINGS} for record in (first, second))
    return [
        SessionDifference("settings", path.removeprefix("trial."), in_a, in_b) for path, in_a, in_b in differences(a, b)
    ]
