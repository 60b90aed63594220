"""What differs between two sessions: settings, code, packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rldsl.spec.paths import differences
from rldsl.store.provenance import differences as origin_differences
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir

SPEC = ("trial", "seed", "target")


class SessionDifference(NamedTuple):
    """One difference: what kind of thing, its name, and what it is in the one and in the other."""

    of: str
    name: str
    a: Any
    b: Any


def session_differences(first: SessionDir, second: SessionDir) -> list[SessionDifference]:
    """Settings first, then code, packages, Python and host, by the newest provenance of each."""
    settings = setting_differences(first.read_session(), second.read_session())
    origins = origin_differences(newest_provenance(first.path), newest_provenance(second.path))
    return [*settings, *(SessionDifference(*each) for each in origins)]


def setting_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[SessionDifference]:
    """What differs between the settings of two `session.json`."""
    one, other = ({name: about.get(name) for name in SPEC} for about in (first, second))
    found = differences(one, other)
    return [SessionDifference("settings", path.removeprefix("trial."), a, b) for path, a, b in found]
