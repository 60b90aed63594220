"""The contract of a backend: what a launcher needs to run jobs somewhere. A user's own backend has the same one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from rldsl.spec.errors import SpecError
from rldsl.spec.implementation import implementation
from rldsl.store.errors import StoreError

if TYPE_CHECKING:
    from rldsl.launch.intents import Intent
    from rldsl.launch.job_records import JobRecord
    from rldsl.launch.jobs import Job, Resources
    from rldsl.spec.launcher import Launcher

JobState: TypeAlias = Literal["pending", "running", "completing", "done", "failed", "cancelled", "unknown"]
"""`completing`: the job is about to end, or to be requeued; its last processes may still write a checkpoint."""

SETUP_FAILED = "setup failed"
"""How the reason of a job begins that ended because a `setup` line failed."""


class QueueState(NamedTuple):
    """The state of a job according to its queue."""

    state: JobState = "unknown"
    reason: str = ""
    """Why it waits or ended: "Priority", "out of memory", "node failure", "time limit", "exit 1", ..."""
    where: str = ""
    """The node or instance that runs it."""

    @property
    def live(self) -> bool:
        """Whether the queue has not finished with the job: it is waiting, running or completing."""
        return self.state in ("pending", "running", "completing")


class Spending(NamedTuple):
    """What jobs have cost so far, and what those that run cost per hour, in dollars."""

    cost: float = 0.0
    per_hour: float = 0.0

    @property
    def words(self) -> str:
        """Empty if nothing costs money."""
        now = f", ${self.per_hour:.2f}/h now" if self.per_hour else ""
        return f"cost so far: ${self.cost:.2f}{now}" if self.cost or self.per_hour else ""


class Usage(NamedTuple):
    """What jobs have used so far, according to the accounts of their queue."""

    core_hours: float = 0.0
    gpu_hours: float = 0.0

    @property
    def words(self) -> str:
        """Empty if no queue keeps accounts."""
        gpus = f", {self.gpu_hours:,.2f} GPU-hours" if self.gpu_hours else ""
        return f"used so far: {self.core_hours:,.2f} core-hours{gpus}" if self.core_hours else ""


class Check(NamedTuple):
    """One line of `rldsl launchers`: a precondition for submitting jobs, and whether it holds."""

    name: str
    ok: bool
    words: str
    optional: bool = False
    """Whether jobs can be submitted without it."""


class Refused(StoreError):
    """The queue did not accept all jobs; `ids` are those of the jobs that it accepted, from the first one on."""

    def __init__(self, sentence: str, ids: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.ids = list(ids)


class LimitReached(Refused):
    """The queue accepts no more jobs until others have ended: its limit of submitted jobs is reached."""


class QueueUnavailable(StoreError):
    """The queue does not answer: the states of its jobs are not known."""


class Backend(Protocol):
    """Runs jobs. Constructed from a launcher and the run directory; keeps no state outside of those two.

    A backend may have a class attribute `dependencies = True`: its queue starts a job only when those of `Job.after`
    have ended well, and ends it if they have not. For others, rldsl itself holds such sessions back.
    """

    def __init__(self, launcher: Launcher, runs: Path) -> None: ...

    def check(self) -> list[Check]:
        """The preconditions for submitting jobs from this machine."""

    def offers(self, resources: Resources) -> list[str]:
        """Lines for `plan --on`: the resources that jobs would get and their price, if there is anything to show."""

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        """Submits jobs with equal resources and returns an id for each, in order.

        Raises `Refused` if the queue has accepted only the first ones, or none, and another `StoreError` if it is not
        known which ones it has accepted: after a lost answer, for example.

        `code` is the frozen copy of the code. `folder` is a new directory for the files of this submission: scripts,
        commands, logs. One call submits many jobs, so it should make few requests. It may be killed at any moment:
        whatever the queue has accepted by then must be found by `find`. So the name of `folder`, which is unique, or
        names that are written to it before the first request, must become part of the names or comments of the jobs.
        """

    def find(self, intent: Intent) -> dict[int, str]:
        """The jobs of a submission that the queue has, by their position in `intent.jobs`; ended ones may be missing.

        Called after a submission whose outcome is not known. Raises `QueueUnavailable`.
        """

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        """The states of jobs, with few requests; a job that is left out is unknown. Raises `QueueUnavailable`."""

    def cancel(self, ids: Sequence[str]) -> None:
        """Cancels waiting and running jobs; running ones are asked to checkpoint first."""

    def fetch(self, records: Sequence[JobRecord]) -> None:
        """Copies results and logs of these jobs into the run directory if the filesystem is not shared."""

    def last_lines(self, record: JobRecord) -> list[str]:
        """The end of the output that the queue itself kept of a job, for jobs that ended before training began."""


def backend_for(launcher: Launcher, runs: Path) -> Backend:
    """An instance of the backend that a launcher's `implementation` names."""
    backend = implementation(launcher)(launcher, runs)
    needed = [name for name in vars(Backend) if not name.startswith("_")]
    if missing := [name for name in needed if not callable(getattr(backend, name, None))]:
        raise SpecError(f"{type(launcher).__name__} cannot run: {type(backend).__name__} has no {', '.join(missing)}")
    return backend  # type: ignore[no-any-return]  # implementations are found by name
