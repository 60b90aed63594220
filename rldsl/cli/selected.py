"""The sessions that a command line selects: of an experiment file, of a saved plan, or by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from rldsl.cli.load import load
from rldsl.launch.search_state import started_plan
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Part, Plan, Row
from rldsl.plan.reapply import MOST_COMPARED, Reapplied
from rldsl.spec.base import SCHEMA
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session, session_id
from rldsl.store.errors import StoreError
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir


@dataclass(frozen=True)
class Selected:
    """What a command is about."""

    plan: Plan
    experiments: Sequence[Overridden] = ()
    """Those of the experiment file; none for a saved plan and for sessions."""
    file: Path | None = None
    """The experiment file, for the classes that it defines."""

    def started(self, runs: Path) -> Plan:
        """The plan; of searches, the sessions that were started so far."""
        if not any(one.experiment.sampled for one in self.experiments):
            return self.plan
        searches = replace(started_plan(self.experiments, runs), needed=self.plan.needed)
        known = {row.id for row in searches.rows()}
        extra = [row for row in self.plan.rows() if row.overrides and row.id not in known and row.differs]
        return replace(searches, rows=lambda: chain(searches.rows(), extra))

    def without_searches(self) -> Plan:
        """The plan without experiments whose trials are sampled."""
        searches = {one.experiment.name for one in self.experiments if one.experiment.sampled}
        if not searches:
            return self.plan
        parts = tuple(part for part in self.plan.parts if part.name not in searches)
        rows = lambda: (row for row in self.plan.rows() if row.experiment not in searches)  # noqa: E731
        return replace(self.plan, parts=parts, rows=rows)


def is_session(file: Path) -> bool:
    """Whether the argument FILE names a session or trial instead of a file."""
    return file.suffix not in (".py", ".json") and not file.is_file()


def sessions_plan(names: Iterable[str], runs: Path, file: Path | None) -> Plan:
    """The plan of sessions in the run directory, by their ids or directories; a trial means all its sessions."""
    if file is not None:
        load(file)  # for the classes that it defines
    found = list(dict.fromkeys(session for name in names for session in Runs(runs).find_all(name)))
    return plan_of([recorded(session, file, f"FILE --session {session.id}") for session in found])


def plan_of(sessions: Sequence[Session]) -> Plan:
    """A plan of exactly these sessions; the settings that were overridden tell their trials apart."""
    rows = list(_rows(sessions))
    parts = [
        Part(
            name=name,
            trials=len({row.id for row in rows if row.experiment == name}),
            seeds=max(len(row.seeds) for row in rows if row.experiment == name),
            frames=max(row.trial.budget.frames for row in rows if row.experiment == name),
            search=None,
            adaptive=False,
            target=next(row.target for row in rows if row.experiment == name),
            overrides=(),
            work=None,
        )
        for name in dict.fromkeys(row.experiment for row in rows)
    ]
    return Plan(tuple(parts), lambda: iter(rows))


def with_overridden(plan: Plan, experiments: Sequence[Overridden], runs: Path) -> Plan:
    """The plan, and sessions of its experiments that were trained with options such as --frames or --seeds.

    A session belongs to an experiment that has its settings once the options of the session are applied to it.
    """
    if plan.sessions > MOST_COMPARED:
        return plan
    declared = {one.experiment.name: Reapplied(one.experiment) for one in experiments}
    known = {(row.id, seed) for row in plan.rows() for seed in row.seeds}
    found = []
    for directory in Runs(runs).sessions():
        if (directory.trial, directory.seed) in known or (directory.seed or 0) >= SEARCH_SEEDS_FROM:
            continue
        try:
            record = directory.read_session()
            if record.get("experiment") in declared and record.get("overrides") and record.get("schema") == SCHEMA:
                session = Session.from_record(record, directory.path)
                if own := declared[session.experiment].session(session):
                    found.append(own)
        except (SpecError, StoreError):
            continue
    extra = list(_rows(found))
    return replace(plan, rows=lambda: chain(plan.rows(), extra)) if extra else plan


def override_notes(plan: Plan, started: Iterable[str]) -> list[str]:
    """How the started sessions, given by their ids, were trained that do not have the settings of the file."""
    trained = set(started)
    given = {part.name for part in plan.parts if part.overrides}  # the command line has them itself
    changed = (row for row in plan.rows() if row.overrides and row.experiment not in given)
    begun = (row for row in changed if any(session_id(row.id, seed) in trained for seed in row.seeds))
    return list(dict.fromkeys(", ".join(dict.fromkeys(one.source for one in row.overrides)) for row in begun))


def _rows(sessions: Sequence[Session]) -> Iterator[Row]:
    trials: dict[tuple[str, str], list[Session]] = {}
    for session in sessions:
        trials.setdefault((session.experiment, session.trial.id), []).append(session)
    for (name, id), same in trials.items():
        differs = {one.path: one.now for one in same[0].overrides if not one.path.startswith("seeds")}
        seeds = tuple(session.seed for session in same)
        yield Row(name, same[0].trial, id, seeds, differs, same[0].target, same[0].overrides)


def recorded(directory: SessionDir, file: Path | None, option: str) -> Session:
    """The session in a directory. If its classes are not known, the error says with which option to give its file."""
    try:
        return Session.from_record(directory.read_session(), directory.path)
    except SpecError as error:
        if file is not None:
            raise
        hint = f"give its experiment file as well: {option}"
        raise SpecError(f"{directory.id} cannot be read from here: {error.sentence}; {hint}") from None
