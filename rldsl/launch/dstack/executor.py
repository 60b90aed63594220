"""A Submitit executor for dstack, `cluster="dstack"`: every function is a run, whose name is the job's id.

The files of all runs are uploaded once, their states come from one request, and the result of a function is read from
the log of its run.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from submitit.core import core, job_environment, utils

from rldsl.launch.backend import Refused
from rldsl.launch.dstack.api import Api, DstackError, Run
from rldsl.launch.dstack.archive import code_files, requirements, wrapped
from rldsl.launch.dstack.configuration import CODE, FOLDER, JOBS, PLAN, REQUIREMENTS, configuration, run_name
from rldsl.launch.jobs import LEAST, Resources
from rldsl.spec.dstack import Dstack

RESULT = "@@submitit-result@@"
"""Prefix of the line of a log with the pickled result of a function."""
AT_A_TIME = 8
STATES = {
    "pending": "PENDING",
    "submitted": "PENDING",
    "provisioning": "PENDING",
    "running": "RUNNING",
    "terminating": "COMPLETING",
    "done": "COMPLETED",
    "failed": "FAILED",
    "terminated": "CANCELLED",
}


class DstackInfoWatcher(core.InfoWatcher):
    """Asks for the states of all jobs in one request."""

    def __init__(self, delay_s: int = 15) -> None:
        super().__init__(delay_s)
        self.runs: dict[str, Run] = {}

    def update(self) -> None:
        self._num_calls += 1
        self.runs |= Api().runs(self._registered - self._finished)
        for name, run in self.runs.items():
            self._info_dict[name] = {"JobID": name, "State": STATES.get(run["status"], "UNKNOWN")}
        self._last_status_check = time.time()

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        return self.get_info(job_id, mode=mode).get("State", "UNKNOWN")


class DstackJob(core.Job[Any]):
    """A run; its log and its result are downloaded when it has ended."""

    watcher = DstackInfoWatcher()

    def done(self, force_check: bool = False) -> bool:
        if self.paths.result_pickle.exists():
            return True
        ended = self.watcher.is_done(self.job_id, mode="force" if force_check else "standard")
        if ended:
            self.download()
        return ended

    def download(self) -> None:
        """Writes the files that Submitit expects, from the current log of the run."""
        if (run := self.watcher.runs.get(self.job_id)) is None:
            return
        log, value = split_log(Api().log(run))
        self.paths.stdout.write_text(log)
        if value is not None:
            with utils.temporary_save_path(self.paths.result_pickle) as temporary:
                temporary.write_bytes(value)

    def cancel(self, check: bool = True) -> None:
        Api().stop([self.job_id])


def split_log(log: str) -> tuple[str, bytes | None]:
    """The output of a run, and the pickled result in it."""
    lines = log.split("\n")
    values = [line.removeprefix(RESULT).strip() for line in lines if line.startswith(RESULT)]
    rest = "\n".join(line for line in lines if not line.startswith(RESULT))
    try:
        return rest, base64.b64decode(values[-1], validate=True) if values else None
    except binascii.Error:  # the machine went away while it was written
        return rest, None


class DstackJobEnvironment(job_environment.JobEnvironment):
    """The environment variables of a run."""

    _env: ClassVar[dict[str, str]] = {
        "job_id": "DSTACK_RUN_NAME",
        "num_tasks": "DSTACK_NODES_NUM",
        "num_nodes": "DSTACK_NODES_NUM",
        "node": "DSTACK_NODE_RANK",
        "global_rank": "DSTACK_NODE_RANK",
        "local_rank": "_NO_SUCH_VARIABLE",
    }

    def _requeue(self, countdown: int) -> None:
        """dstack itself retries runs that end with an error, if the profile says so."""


class DstackExecutor(core.Executor):
    """Runs functions on machines of a `profile`, with a frozen copy of the `code` and a `plan` file."""

    job_class = DstackJob

    @classmethod
    def affinity(cls) -> int:
        return 0  # never chosen automatically

    @classmethod
    def _equivalence_dict(cls) -> Any:  # the TypedDict requires nodes and tasks, which a run does not have
        return {
            "name": "name",
            "timeout_min": "timeout_min",
            "mem_gb": "memory_gb",
            "cpus_per_task": "cpus",
            "gpus_per_node": "gpus",
        }

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {"name", "timeout_min", "memory_gb", "cpus", "gpus", "profile", "code", "plan", "resources"}

    def _internal_process_submissions(
        self, delayed_submissions: Sequence[utils.DelayedSubmission]
    ) -> list[core.Job[Any]]:
        names = [run_name(self.parameters.get("name", "job")) for _ in delayed_submissions]
        pickles = {
            f"{name}_submitted.pkl": self._pickled(name, one)
            for name, one in zip(names, delayed_submissions, strict=True)
        }
        submit_runs(Api(), names, self._spec(pickles))
        return [DstackJob(self.folder, name) for name in names]

    def _pickled(self, name: str, submission: utils.DelayedSubmission) -> bytes:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = utils.JobPaths(self.folder, name).submitted_pickle
        submission.set_timeout(round(self.profile.hours * 60), 0)
        submission.dump(path)
        return path.read_bytes()

    @property
    def profile(self) -> Dstack:
        """The profile with Submitit's own parameters applied."""
        profile: Dstack = self.parameters.get("profile") or Dstack()
        changes: dict[str, Any] = {
            name: self.parameters[name] for name in ("memory_gb", "cpus", "gpus") if name in self.parameters
        }
        if "timeout_min" in self.parameters:
            changes["hours"] = self.parameters["timeout_min"] / 60
        return profile.with_(**changes) if changes else profile

    def _spec(self, pickles: dict[str, bytes]) -> dict[str, Any]:
        """The spec shared by all runs of a submission; each finds its own pickle by its name."""
        resources: Resources = self.parameters.get("resources", LEAST)
        archives = {JOBS: {**pickles, **self._extra()}}
        if code := self.parameters.get("code"):
            archives[CODE] = code_files(Path(code))
        packed = {name: wrapped(f"{name}.tar.gz", files) for name, files in archives.items()}
        api = Api()
        uploaded = [{"id": api.upload(data), "path": f"{FOLDER}/{name}.tar.gz"} for name, data in packed.items()]
        return {"configuration": configuration(self.profile, resources, list(packed)), "file_archives": uploaded}

    def _extra(self) -> dict[str, bytes]:
        plan = self.parameters.get("plan")
        files = {REQUIREMENTS: requirements().encode()} if self.profile.install else {}
        return {**files, PLAN: Path(plan).read_bytes()} if plan else files


def submit_runs(api: Api, names: Sequence[str], spec: dict[str, Any]) -> None:
    """Starts runs concurrently; if one is refused, those after it are stopped and `Refused` is raised."""

    def apply(name: str) -> DstackError | None:
        try:
            api.apply(name, {**spec, "configuration": {**spec["configuration"], "name": name}})
        except DstackError as error:
            return error
        return None

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        errors = list(pool.map(apply, names))
    refused = [index for index, error in enumerate(errors) if error is not None]
    if refused:
        api.stop([name for name, error in zip(names[refused[0] :], errors[refused[0] :], strict=True) if not error])
        raise Refused(str(errors[refused[0]]), names[: refused[0]])
