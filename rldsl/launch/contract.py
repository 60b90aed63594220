"""What a place to run is: one contract for every queue, a user's own included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from rldsl.spec.errors import SpecError
from rldsl.spec.implementation import implementation
from rldsl.store.errors import StoreError

if TYPE_CHECKING:
    from rldsl.launch.jobs import Job, Resources
    from rldsl.launch.tickets import Ticket
    from rldsl.spec.launcher import Launcher

State: TypeAlias = Literal["pending", "running", "done", "failed", "cancelled", "unknown"]


class QueueState(NamedTuple):
    """How a job stands, by its queue alone."""

    state: State = "unknown"
    reason: str = ""  # "out of memory", "node failure", "time limit", "exit 1", "waits: Priority", ...
    where: str = ""  # the node or instance that runs it

    @property
    def live(self) -> bool:
        """Whether the queue still has it: waiting or running."""
        return self.state in ("pending", "running")


class Check(NamedTuple):
    """A line of `rldsl launchers`."""

    name: str
    ok: bool
    words: str


class Refused(StoreError):
    """The queue did not take all of the jobs: `ids` are of those that it took, from the first one on."""

    def __init__(self, sentence: str, ids: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.ids = list(ids)


class QueueSilent(StoreError):
    """The queue does not answer; how its jobs stand is not known."""


class Backend(Protocol):
    """Where jobs run. Made of a launcher and the run directory; holds no state that is not in one of them."""

    def __init__(self, launcher: Launcher, runs: Path) -> None: ...

    def check(self) -> list[Check]:
        """Whether jobs could be submitted from here, step by step."""

    def offers(self, resources: Resources) -> list[str]:
        """Lines for `plan --on`: what there is and what it costs; none where there is nothing to say."""

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        """Submits jobs that need the same; gives an id for each, in order, by few calls. Raises `Refused`.

        `code` is the frozen copy, `folder` a fresh one for what the submission leaves behind: scripts, pickles, logs.
        """

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        """How jobs stand, by few calls; one that is not in the answer is unknown. Raises `QueueSilent`."""

    def cancel(self, ids: Sequence[str]) -> None:
        """Ends jobs, waiting or running; what runs is asked to checkpoint first."""

    def fetch(self, tickets: Sequence[Ticket]) -> None:
        """Brings results and logs home where there is no shared filesystem."""

    def last_words(self, ticket: Ticket) -> list[str]:
        """The last lines that the queue itself has of a job: of one that ended before its session had a log."""


def place_of(launcher: Launcher, runs: Path) -> Backend:
    """The place that a launcher's `implementation` names."""
    made = implementation(launcher)(launcher, runs)
    needed = [name for name in vars(Backend) if not name.startswith("_")]
    if missing := [name for name in needed if not callable(getattr(made, name, None))]:
        raise SpecError(f"{type(launcher).__name__} cannot run: {type(made).__name__} has no {', '.join(missing)}")
    return made  # type: ignore[no-any-return]
