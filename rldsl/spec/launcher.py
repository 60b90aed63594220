"""Launchers: places to run, and what of them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from rldsl.spec.base import Count, Kind, Natural, Positive
from rldsl.spec.text import ShellLine, VariableName, Variables, Word, matching

Constraint: TypeAlias = Annotated[
    str, matching(r"[A-Za-z0-9_.:=*&|,()\[\]-]+", "names of features with & | , * ( ) [ ] between them")
]


class Launcher(Kind, frozen=True):
    """A place to run."""

    same_python: ClassVar[bool] = True
    """Whether jobs run with the Python of this machine, and so can do what it can."""

    members: Count | None = Field(
        default=None, description="Sessions that a process trains together at most; none: as many as pays"
    )

    @property
    def queue(self) -> str:
        """Jobs of launchers with the same one are asked for together."""
        return self.kind


class Local(Launcher, frozen=True):
    """This machine: a process for each pack of sessions, several at a time."""

    kind: Literal["local"] = "local"
    implementation: ClassVar[str] = "rldsl.launch.local_backend:LocalBackend"
    parallel: Count | None = Field(
        default=None, description="Processes at a time; none: one for each GPU, or for each core as far as memory lasts"
    )
    memory_gb: Positive = Field(default=1.0, description="Memory that a process is thought to need")


class Slurm(Launcher, frozen=True):
    """A SLURM cluster whose nodes share this filesystem: jobs in arrays, through Submitit."""

    kind: Literal["slurm"] = "slurm"
    implementation: ClassVar[str] = "rldsl.launch.slurm:SlurmBackend"
    partition: Word | None = Field(default=None, description="Where; none: the site's own choice")
    account: Word | None = Field(default=None, description="Who pays")
    qos: Word | None = Field(default=None, description="Quality of service")
    gpus: Natural | None = Field(default=None, description="GPUs of a job; none: one if its sessions compute on one")
    gpu: Word | None = Field(default=None, description="Which GPU, as the site calls it: a100")
    cpus: Count | None = Field(default=None, description="Cores of a job; none: as many as its sessions have threads")
    memory_gb: Positive | None = Field(default=None, description="Memory of a job; none: the site's own choice")
    hours: Positive = Field(default=24.0, description="Time limit of one life of a job; it goes on in its next one")
    warning_seconds: Count = Field(
        default=120, description="How long before its end a job is told to checkpoint; a third of its time at most"
    )
    constraint: Constraint | None = Field(default=None, description="Features that a node must have: a100|h100")
    parallel: Count | None = Field(default=None, description="Jobs of an array that run at a time; none: all")
    setup: tuple[ShellLine, ...] = Field(default=(), description="Shell lines of a job before it starts: module load")
    env: Variables = Field(default={}, description="Environment variables of a job, with their values")
    pass_env: tuple[VariableName, ...] = Field(
        default=(), description="Names of variables that a job gets from where it is submitted: for secrets"
    )
