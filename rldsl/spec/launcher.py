"""Launchers: where sessions run and with which resources."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from rldsl.spec.base import Count, Flag, Kind, Natural, Positive
from rldsl.spec.sbatch import SbatchOptions
from rldsl.spec.text import ProjectPath, ShellLine, VariableName, Variables, Word, matching

Constraint: TypeAlias = Annotated[
    str, matching(r"[A-Za-z0-9_.:=*&|,()\[\]-]+", "names of features with & | , * ( ) [ ] between them")
]

Partitions: TypeAlias = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*(,[A-Za-z0-9_][A-Za-z0-9_.:@+-]*)*", "a partition, or several as in gpu,cpu"
    ),
]
ImagePath: TypeAlias = Annotated[
    str,
    matching(r"(docker://|oras://|library://)?[A-Za-z0-9_./~][A-Za-z0-9_./:@+~-]*", "the path or address of an image"),
]


class Launcher(Kind, frozen=True):
    """Where sessions run and with which resources."""

    members: Count | None = Field(
        default=None, description="Maximum number of sessions trained together in one process; None: chosen for speed"
    )
    include: tuple[ProjectPath, ...] = Field(
        default=(),
        description="Untracked files that jobs need: patterns such as `assets/*.xml`, relative to the project",
    )

    @property
    def same_python(self) -> bool:
        """Whether jobs run with this Python environment, so that missing packages can be reported before submission."""
        return True

    @property
    def results_here(self) -> bool:
        """Whether the results of sessions reach the run directory of this machine while they run."""
        return True

    @property
    def offers_gpus(self) -> bool:
        """Whether sessions that profit from a GPU get one, even if they do not insist on it."""
        return self.asked_gpus > 0

    @property
    def asked_gpus(self) -> int:
        """The GPUs of each job, whatever its sessions use."""
        return 0

    @property
    def queue(self) -> str:
        """The queue that jobs are submitted to; the jobs of one queue are queried together."""
        return self.kind

    def driver(self) -> Launcher:
        """Where the driver of a detached search runs: a process of this machine that submits jobs to the queue."""
        return Local()


class Local(Launcher, frozen=True):
    """This machine: one process per pack of sessions, several in parallel."""

    kind: Literal["local"] = "local"
    implementation: ClassVar[str] = "rldsl.launch.local_backend:LocalBackend"
    parallel: Count | None = Field(
        default=None,
        description="Parallel processes; None: `per_gpu` for each GPU, otherwise as many as cores and memory allow",
    )
    per_gpu: Count = Field(default=1, description="Processes that share a GPU")
    memory_gb: Positive | None = Field(
        default=None, description="Memory of a process; None: estimated from its replay buffers, at least 1 GB"
    )


class QueueLauncher(Launcher, frozen=True):
    """A queue whose jobs get a share of a machine, or all of it, and fill it with processes of one pack each."""

    cpus: Count | None = Field(default=None, description="CPU cores per job; None: the threads of its processes")
    gpus: Natural | None = Field(default=None, description="GPUs per job; None: as many as its sessions use")
    processes: Count | None = Field(
        default=None,
        description="Processes per job, each with its own pack, cores and GPU; None: as many as the job has room for",
    )
    per_gpu: Count = Field(default=1, description="Processes that share a GPU")

    @property
    def asked_gpus(self) -> int:
        return self.gpus or 0


class Slurm(QueueLauncher, frozen=True):
    """A SLURM cluster whose nodes share this filesystem; jobs are submitted as arrays with sbatch."""

    kind: Literal["slurm"] = "slurm"
    implementation: ClassVar[str] = "rldsl.launch.slurm:SlurmBackend"
    partition: Partitions | None = Field(
        default=None, description="Partition, or several as in gpu,cpu; None: the cluster's default"
    )
    account: Word | None = Field(default=None, description="Account to charge")
    qos: Word | None = Field(default=None, description="Quality of service")
    gpu: Word | None = Field(default=None, description="GPU type, as the cluster names it: a100")
    memory_gb: Positive | None = Field(
        default=None,
        description="Memory per job; None: estimated if its replay buffers are large, otherwise the cluster's default",
    )
    hours: Positive = Field(
        default=24.0, description="Time limit of one run of a job; the job checkpoints before it and is requeued"
    )
    warning_seconds: Count = Field(
        default=120,
        description="Seconds before the time limit at which a job is signalled to checkpoint; at most a third of it",
    )
    constraint: Constraint | None = Field(default=None, description="Required node features: a100|h100")
    parallel: Count | None = Field(
        default=None, description="Maximum number of running jobs of an array, and of a search; None: all, and 16"
    )
    driver_hours: Positive = Field(
        default=24.0, description="Time limit of one run of the driver of a detached search, which is requeued"
    )
    driver_partition: Partitions | None = Field(
        default=None, description="Partition of that driver, a job of one core; None: as for other jobs"
    )
    setup: tuple[ShellLine, ...] = Field(
        default=(), description="Lines for a login shell, to run before the job: module load; one that fails ends it"
    )
    env: Variables = Field(default={}, description="Environment variables of the job")
    pass_env: tuple[VariableName, ...] = Field(
        default=(), description="Environment variables copied from the submitting shell, for secrets"
    )
    sbatch: SbatchOptions = Field(
        default={}, description="Other options of sbatch: {'nice': 100, 'exclude': 'node7', 'exclusive': True}"
    )
    container: ImagePath | None = Field(
        default=None, description="Apptainer image that sessions train in; its python needs rldsl's dependencies"
    )

    scratch: Flag = Field(
        default=False,
        description="Write checkpoints to the node's own disk ($TMPDIR) and copy them to the run directory meanwhile",
    )

    @property
    def same_python(self) -> bool:
        return self.container is None

    @property
    def offers_gpus(self) -> bool:
        return self.gpus > 0 if self.gpus is not None else self.gpu is not None

    def driver(self) -> Slurm:
        """A job of one core beside the jobs of the search."""
        partition = self.driver_partition or self.partition
        resources = {"cpus": 1, "gpus": 0, "gpu": None, "memory_gb": None, "constraint": None, "parallel": None}
        resources |= {"processes": None, "per_gpu": 1, "container": None, "scratch": False}
        return self.with_(hours=self.driver_hours, partition=partition, **resources)
