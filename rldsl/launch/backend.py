"""The contract of a backend: what a launcher needs to run jobs somewhere. A user's own backend has the same one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from rldsl.spec.errors import SpecError
from rldsl.spec.implementation import implementation
from rldsl.store.errors import StoreError

if TYPE_CHECKING:
    from rldsl.launch.job_records import JobRecord
    from rldsl.launch.jobs import Job, Resources
    from rldsl.spec.launcher import Launcher

JobState: TypeAlias = Literal["pending", "running", "done", "failed", "cancelled", "unknown"]


class QueueState(NamedTuple):
    """The state of a job according to its queue."""

    state: JobState = "unknown"
    reason: str = ""
    """Why it waits or ended: "Priority", "out of memory", "node failure", "time limit", "exit 1", ..."""
    where: str = ""
    """The node or instance that runs it."""

    @property
    def live(self) -> bool:
        """Whether the job is waiting or running."""
        return self.state in ("pending", "running")


class Check(NamedTuple):
    """One line of `rldsl launchers`: a precondition for submitting jobs, and whether it holds."""

    name: str
    ok: bool
    words: str


class Refused(StoreError):
    """The queue did not accept all jobs; `ids` are those of the jobs that it accepted, from the first one on."""

    def __init__(self, sentence: str, ids: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.ids = list(ids)


class QueueUnavailable(StoreError):
    """The queue does not answer: the states of its jobs are not known."""


class Backend(Protocol):
    """Runs jobs. Constructed from a launcher and the run directory; keeps no state outside of those two."""

    def __init__(self, launcher: Launcher, runs: Path) -> None: ...

    def check(self) -> list[Check]:
        """The preconditions for submitting jobs from this machine."""

    def offers(self, resources: Resources) -> list[str]:
        """Lines for `plan --on`: the resources that jobs would get and their price, if there is anything to show."""

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        """Submits jobs with equal resources and returns an id for each, in order. Raises `Refused`.

        `code` is the frozen copy of the code. `folder` is a new directory for the files of this submission: scripts,
        pickles, logs. One call submits many jobs, so it should make few requests.
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
