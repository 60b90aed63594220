"""Sessions that other code than the present one has trained: refuse to continue them, continue, or train them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.store.code_version import CodeVersion, CodeVersions
from rldsl.store.errors import OtherCode
from rldsl.store.kept_sources import recorded_files
from rldsl.store.provenance import newest_provenance
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import State
from rldsl.store.set_aside import set_aside

Decision: TypeAlias = Literal["refuse", "continue", "redo", "redo all"]
"""What to do with sessions that other code trained. `redo all` trains every session of the plan again."""
MOST_NAMED = 3


class SessionsOfOtherCode(OtherCode):
    """Sessions that would be continued with other code than they were started with."""

    def __init__(self, sessions: Sequence[PlannedSession], changed: Sequence[str]) -> None:
        self.sessions, self.changed = sessions, changed
        super().__init__(
            f"{self.finding}: --continue resumes with the present code, --redo sets aside and trains again, "
            f"`rldsl diff {sessions[0].id} FILE` shows what changed"
        )

    @property
    def finding(self) -> str:
        """`2 sessions of cartpole/ppo were started with other code (agent.py differs)`."""
        names = Counter(one.row.experiment for one in self.sessions)
        number = "1 session" if len(self.sessions) == 1 else f"{len(self.sessions):,} sessions"
        files = _listed(self.changed)
        differ = f" ({files} {'differs' if len(self.changed) == 1 else 'differ'})" if files else ""
        verb = "was" if len(self.sessions) == 1 else "were"
        return f"{number} of {_listed(list(names))} {verb} started with other code{differ}"


def settle(plan: Plan, runs: Path, file: Path | None, states: Collection[State], decision: Decision) -> Existing:
    """The sessions on disk after the decision was carried out; raises `SessionsOfOtherCode` if it is to refuse."""
    code = CodeVersions(file)
    existing = Existing(runs, code)
    if not existing.directories:
        return existing
    if decision == "continue":
        return existing
    trained = [one for one in existing.sessions(plan) if one.state not in ("new", "running")]
    other = trained if decision == "redo all" else [one for one in trained if one.on_disk.other_code]
    if decision == "refuse":
        if started := [one for one in other if one.state in states and one.on_disk.checkpoint_frame is not None]:
            raise SessionsOfOtherCode(started, changed_files(started[0], runs, code.of(started[0].row.trial)))
        return existing
    for one in other:
        set_aside(SessionDir(runs / one.directory))
    return Existing(runs, code) if other else existing


def changed_files(planned: PlannedSession, runs: Path, version: CodeVersion) -> list[str]:
    """The files in which a session's code differs from a version; the user's own first."""
    before = recorded_files(newest_provenance(runs / planned.directory).get("code") or {})
    now = {name: file.digest for name, file in version.files.items()}
    differ = [name for name in {**before, **now} if (before.get(name) or ("",))[0] != now.get(name, "")]
    return sorted(differ, key=lambda name: (name.startswith("rldsl."), name))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
