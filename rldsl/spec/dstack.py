"""dstack: machines of a cloud or of one's own, by what they must have and may cost."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from rldsl.spec.base import Count, Flag, Natural, Positive, Unique
from rldsl.spec.launcher import Launcher
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
        raise PydanticCustomError("secret", "should be the name of a secret, and looks like its value")
    return name


SecretName: TypeAlias = Annotated[
    str, matching(r"[A-Za-z_][A-Za-z0-9_]{0,199}", "letters, digits and _"), AfterValidator(_no_value)
]


class Dstack(Launcher, frozen=True):
    """Machines that dstack finds: each job a run of its own, tried again on another machine where one is lost."""

    kind: Literal["dstack"] = "dstack"
    implementation: ClassVar[str] = "rldsl.launch.dstack.backend:DstackBackend"
    same_python: ClassVar[bool] = False
    gpu: Names = Field(default=(), description="Names of GPUs, any of which will do: L4, A10G")
    gpu_memory_gb: Positive | None = Field(default=None, description="Memory of a GPU, at least")
    gpus: Natural | None = Field(default=None, description="GPUs of a job; none: one if its sessions compute on one")
    cpus: Count | None = Field(default=None, description="Cores of a job; none: as many as its sessions have threads")
    memory_gb: Positive | None = Field(default=None, description="Memory of a job, at least")
    disk_gb: Positive | None = Field(default=None, description="Disk of a job, at least")
    hours: Positive = Field(default=24.0, description="Time limit of one life of a job; it goes on in its next one")
    spot: Literal["auto", "spot", "on-demand"] = Field(
        default="auto", description="Machines that may be taken away and cost less; auto: whichever costs less"
    )
    max_price: Positive | None = Field(default=None, description="Dollars an hour, at most")
    backends: Names = Field(default=(), description="Clouds; none: all that the project has")
    regions: Names = Field(default=(), description="Regions; none: all")
    fleets: Names = Field(default=(), description="Fleets; none: all that the project has")
    volumes: tuple[Mount, ...] = Field(
        default=(), description="Volumes with the paths that they are mounted at: data:/data"
    )
    retry_on: Annotated[tuple[Event, ...], Unique] = Field(
        default=("no-capacity", "interruption", "error"),
        description="After which events dstack tries again; a lost machine counts as an error",
    )
    retry_hours: Positive = Field(
        default=24.0, description="For how long: of waiting for a machine, or since the last interruption or error"
    )
    image: Image | None = Field(default=None, description="Docker image; none: dstack's own")
    python: Python | None = Field(default=None, description="Version of Python in dstack's image; none: as here")
    install: Flag = Field(default=True, description="Install the packages that rldsl needs, of the versions here")
    setup: tuple[ShellLine, ...] = Field(default=(), description="Shell lines of a job before it starts")
    env: Variables = Field(default={}, description="Environment variables of a job, with their values")
    secrets: Annotated[tuple[SecretName, ...], Unique] = Field(
        default=(),
        description="Names of secrets of the project; a job has each as the variable of that name in capitals",
    )
    results: Results | None = Field(
        default=None, description="Where sessions are kept: user/name on the Hugging Face Hub, or a /path of a volume"
    )
    push_minutes: Positive = Field(default=10.0, description="Minutes between two uploads to the Hub")

    @property
    def repository(self) -> str | None:
        """The dataset repository on the Hub, if that is where sessions are kept."""
        return None if self.results is None or self.results.startswith("/") else self.results

    @model_validator(mode="after")
    def _complete(self) -> Dstack:
        if self.image and self.python:
            raise ValueError("Dstack: an image has its own Python: give image or python, not both")
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
