"""Launchers: where sessions run and with which resources."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from rldsl.spec.base import Count, Kind, Natural, Positive
from rldsl.spec.text import ShellLine, VariableName, Variables, Word, matching

Constraint: TypeAlias = Annotated[
    str, matching(r"[A-Za-z0-9_.:=*&|,()\[\]-]+", "names of features with & | , * ( ) [ ] between them")
]


class Launcher(Kind, frozen=True):
    """Where sessions run and with which resources."""

    same_python: ClassVar[bool] = True
    """Whether jobs run with this Python environment, so that missing packages can be reported before submission."""

    members: Count | None = Field(
        default=None, description="Maximum number of sessions trained together in one process; None: chosen for speed"
    )

    @property
    def results_here(self) -> bool:
        """Whether the results of sessions reach the run directory of this machine while they run."""
        return True

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
        default=None, description="Parallel processes; None: one per GPU, or one per CPU core as far as memory allows"
    )
    memory_gb: Positive = Field(default=1.0, description="Estimated memory per process")


class Slurm(Launcher, frozen=True):
    """A SLURM cluster whose nodes share this filesystem; jobs are submitted as arrays with Submitit."""

    kind: Literal["slurm"] = "slurm"
    implementation: ClassVar[str] = "rldsl.launch.slurm:SlurmBackend"
    partition: Word | None = Field(default=None, description="Partition; None: the cluster's default")
    account: Word | None = Field(default=None, description="Account to charge")
    qos: Word | None = Field(default=None, description="Quality of service")
    gpus: Natural | None = Field(default=None, description="GPUs per job; None: one if its sessions use a GPU")
    gpu: Word | None = Field(default=None, description="GPU type, as the cluster names it: a100")
    cpus: Count | None = Field(default=None, description="CPU cores per job; None: the threads of its sessions")
    memory_gb: Positive | None = Field(default=None, description="Memory per job; None: the cluster's default")
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
    driver_partition: Word | None = Field(
        default=None, description="Partition of that driver, a job of one core; None: as for other jobs"
    )
    setup: tuple[ShellLine, ...] = Field(
        default=(), description="Shell commands to run before the job, such as module load"
    )
    env: Variables = Field(default={}, description="Environment variables of the job")
    pass_env: tuple[VariableName, ...] = Field(
        default=(), description="Environment variables copied from the submitting shell, for secrets"
    )

    def driver(self) -> Slurm:
        """A job of one core beside the jobs of the search."""
        partition = self.driver_partition or self.partition
        resources = {"cpus": 1, "gpus": 0, "gpu": None, "memory_gb": None, "constraint": None, "parallel": None}
        return self.with_(hours=self.driver_hours, partition=partition, **resources)
