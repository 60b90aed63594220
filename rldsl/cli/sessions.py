"""Sessions that a command line names: of an experiment file, a run directory, or by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rldsl.cli.options import Choice
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import matches
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir


def find_sessions(source: str, only: Sequence[str], runs: Path) -> list[SessionDir]:
    """The sessions on disk; `--only` selects experiments. `source` may also be a saved plan, or an id."""
    if source.endswith((".py", ".json")):
        existing = Existing(runs)
        planned = existing.sessions(Choice(Path(source), only=list(only)).selected(runs, overridden=True).plan)
        return [SessionDir(runs / one.directory) for one in planned if one.state != "new"]
    folder = Path(source)
    if source == str(runs) or (folder.is_dir() and not SessionDir(folder).exists()):
        return _selected(list(Runs(folder).sessions()), only)
    return _selected(Runs(runs).find_all(source), only)


def _selected(sessions: list[SessionDir], only: Sequence[str]) -> list[SessionDir]:
    if not only:
        return sessions
    names = {one: one.recorded().experiment for one in sessions}
    for name in only if sessions else ():
        if not any(matches(name, full) for full in names.values()):
            raise SpecError(f"--only {name}: there is no such experiment; {suggestion(name, set(names.values()))}")
    return [one for one, full in names.items() if any(matches(name, full) for name in only)]
