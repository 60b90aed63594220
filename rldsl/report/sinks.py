"""Experiment trackers that sessions can be copied to: Weights & Biases and trackio. Both packages are optional."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

from rldsl.spec.errors import SpecError

Values = Mapping[str, float]


@dataclass(frozen=True)
class RunInfo:
    """What a tracker is told about a session."""

    id: str
    """The id of the session: a session has one run in a project, however often it is copied."""
    experiment: str
    trial: str
    seed: int
    config: Mapping[str, Any]
    tags: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.experiment} {self.id}"


class OpenRun(Protocol):
    """A run that takes log points."""

    def log(self, step: int, values: Values) -> None: ...

    def finish(self, failed: bool) -> None: ...


class Sink(Protocol):
    """A tracker; `open` continues the run of a session if there is one."""

    keeps_open: bool
    """Whether a run stays open while its session is followed: opening one takes seconds."""

    def open(self, info: RunInfo) -> OpenRun: ...


class WandbSink:
    """Weights & Biases. `WANDB_MODE=offline` writes files that `wandb sync` uploads later."""

    keeps_open = True

    def __init__(self, project: str, directory: Path) -> None:
        _require("wandb")
        self.project, self.directory = project, directory

    def open(self, info: RunInfo) -> OpenRun:
        import wandb

        self.directory.mkdir(parents=True, exist_ok=True)
        quiet = wandb.Settings(
            silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=True, x_disable_meta=True
        )
        try:
            run = wandb.init(
                project=self.project,
                id=info.id,
                name=info.name,
                group=info.experiment,
                job_type=info.trial,
                tags=info.tags,
                config=dict(info.config),
                dir=str(self.directory),
                resume="allow",
                reinit="create_new",
                settings=quiet,
            )
        except wandb.errors.Error as error:
            raise SpecError(
                f"wandb: {str(error).splitlines()[0].rstrip('.')}; WANDB_MODE=offline needs no account"
            ) from error
        return _WandbRun(run)


class _WandbRun:
    def __init__(self, run: Any) -> None:
        self.run = run

    def log(self, step: int, values: Values) -> None:
        self.run.log(dict(values), step=step)

    def finish(self, failed: bool) -> None:
        self.run.finish(exit_code=int(failed))


class TrackioSink:
    """trackio: a local database that `trackio show` displays, or a Hugging Face Space (`TRACKIO_SPACE_ID`)."""

    keeps_open = False

    def __init__(self, project: str) -> None:
        _require("trackio")
        self.project = project

    def open(self, info: RunInfo) -> OpenRun:
        import trackio

        with redirect_stdout(StringIO()):  # it prints several lines for each run
            run = trackio.init(
                project=self.project,
                name=info.name,
                group=info.experiment,
                config={**info.config, "trial": info.trial, "tags": list(info.tags)},
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        return _TrackioRun(run)


class _TrackioRun:
    def __init__(self, run: Any) -> None:
        self.run = run

    def log(self, step: int, values: Values) -> None:
        self.run.log(dict(values), step=step)

    def finish(self, failed: bool) -> None:
        import trackio

        with redirect_stdout(StringIO()):
            trackio.finish()  # the run that `init` made, and forgets it: otherwise it is finished again at exit


SINKS = ("wandb", "trackio")


def make_sink(name: str, project: str, directory: Path) -> Sink:
    """The tracker with this name; `directory` is for files that it keeps."""
    return WandbSink(project, directory) if name == "wandb" else TrackioSink(project)


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise SpecError(f"--to {package} needs the package {package}: pip install 'rldsl[{package}]'")
