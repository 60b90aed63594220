"""The dstack launcher: cloud or on-premises machines, selected by resources and price."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from rldsl.spec.base import Flag, Positive, Unique
from rldsl.spec.launcher import QueueLauncher
from rldsl.spec.text import ShellLine, Variables, Word, looks_secret, matching

HF_TOKEN = "HF_TOKEN"  # noqa: S105 (the name of a variable)
Event: TypeAlias = Literal["no-capacity", "interruption", "error"]
Names: TypeAlias = Annotated[tuple[Word, ...], Unique]
Image: TypeAlias = Annotated[str, matching(r"[a-z0-9][A-Za-z0-9._/:@-]*", "the name of a Docker image")]
Python: TypeAlias = Annotated[str, matching(r"3\.[0-9]+", "a version of Python such as 3.12")]
Mount: TypeAlias = Annotated[
    str, matching(r"(/?[A-Za-z0-9_.-][A-Za-z0-9_./-]*):(/[A-Za-z0-9_./-]+)", "name:/path, or /path:/path")
]
Results: TypeAlias = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*|/[A-Za-z0-9_./-]+",
        "user/name on the Hugging Face Hub, or the /path of a mounted volume",
    ),
]


def _no_value(name: str) -> str:
    if looks_secret("", name) or re.fullmatch(r"hf_[A-Za-z0-9]{8,}", name):
        raise PydanticCustomError("secret", "should be the name of a secret, but looks like its value")
    return name


SecretName: TypeAlias = Annotated[
    str, matching(r"[A-Za-z_][A-Za-z0-9_]{0,199}", "letters, digits and _"), AfterValidator(_no_value)
]


class Dstack(QueueLauncher, frozen=True):
    """Machines provisioned by dstack; every job is a dstack run, which is retried on another machine if one is lost."""

    kind: Literal["dstack"] = "dstack"
    implementation: ClassVar[str] = "rldsl.launch.dstack.backend:DstackBackend"
    gpu: Names = Field(default=(), description="Accepted GPU models, such as L4, A10G")
    gpu_memory_gb: Positive | None = Field(default=None, description="Minimum memory of each GPU")
    memory_gb: Positive | None = Field(
        default=None, description="Minimum memory per job; None: estimated from its replay buffers"
    )
    disk_gb: Positive | None = Field(default=None, description="Minimum disk space per job")
    hours: Positive = Field(
        default=24.0, description="Time limit of one run of a job; the job checkpoints before it and is resumed"
    )
    spot: Literal["auto", "spot", "on-demand"] = Field(
        default="auto", description="Spot (interruptible) or on-demand instances; auto: whichever is cheaper"
    )
    max_price: Positive | None = Field(default=None, description="Maximum price in dollars per hour")
    backends: Names = Field(default=(), description="Cloud backends; empty: all of the project")
    regions: Names = Field(default=(), description="Regions; empty: all")
    fleets: Names = Field(default=(), description="Fleets; empty: all of the project")
    volumes: tuple[Mount, ...] = Field(default=(), description="Volumes and their mount points: data:/data")
    retry_on: Annotated[tuple[Event, ...], Unique] = Field(
        default=("no-capacity", "interruption", "error"),
        description="Events after which dstack retries; a lost machine counts as an error",
    )
    retry_hours: Positive = Field(
        default=24.0,
        description="How long dstack retries: while waiting for capacity, or since the last interruption or error",
    )
    image: Image | None = Field(default=None, description="Docker image; None: dstack's default image")
    python: Python | None = Field(
        default=None, description="Python version in dstack's default image; None: same as on this machine"
    )
    install: Flag = Field(
        default=True, description="Install rldsl's dependencies in the versions installed on this machine"
    )
    setup: tuple[ShellLine, ...] = Field(default=(), description="Shell commands to run before the job")
    env: Variables = Field(default={}, description="Environment variables of the job")
    secrets: Annotated[tuple[SecretName, ...], Unique] = Field(
        default=(),
        description="Names of dstack secrets; each is set as an environment variable with the name in upper case",
    )
    results: Results | None = Field(
        default=None, description="Where sessions are stored: user/name on the Hugging Face Hub, or a /path on a volume"
    )
    push_minutes: Positive = Field(default=10.0, description="Minutes between uploads to the Hub")

    @property
    def same_python(self) -> bool:
        return False

    @property
    def repository(self) -> str | None:
        """The dataset repository on the Hub, if sessions are stored there."""
        return None if self.results is None or self.results.startswith("/") else self.results

    @property
    def asked_gpus(self) -> int:
        return self.gpus if self.gpus is not None else int(bool(self.gpu or self.gpu_memory_gb))

    @property
    def results_here(self) -> bool:
        return self.repository is not None

    @model_validator(mode="after")
    def _complete(self) -> Dstack:
        if self.image and self.python:
            raise ValueError("Dstack: an image brings its own Python: give image or python, not both")
        if self.repository and HF_TOKEN not in (name.upper() for name in self.secrets):
            raise ValueError(
                "Dstack: results on the Hub need a token: name the secret that holds it, as in secrets=('hf_token',)"
            )
        if self.results and not self.repository and not self._mounted(self.results):
            raise ValueError(
                f"Dstack: {self.results} is on no volume: mount one there, as in volumes=('my-volume:{self.results}',)"
            )
        return self

    def _mounted(self, path: str) -> bool:
        mounts = (mount.partition(":")[2].rstrip("/") for mount in self.volumes)
        return any(f"{path}/".startswith(f"{mount}/") for mount in mounts)
