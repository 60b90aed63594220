"""A Submitit executor for dstack, `cluster="dstack"`: every function is a run, whose name is the job's id.

The files of all runs are uploaded once, their states come from one request, and the result of a function is read from
the log of its run.
"""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from submitit.core import core, job_environment, utils

from rldsl.launch.backend import Refused
from rldsl.launch.dstack.api import Api, DstackError, DstackRefusal, Run
from rldsl.launch.dstack.archive import code_files, library_files, wrapped
from rldsl.launch.dstack.configuration import (
    CODE,
    FOLDER,
    JOBS,
    PLAN,
    RAISED,
    REQUIREMENTS,
    configuration,
    run_name,
    write_names,
)
from rldsl.launch.dstack.requirements import extras_of, requirements
from rldsl.launch.jobs import LEAST, Resources
from rldsl.spec.dstack import Dstack
from rldsl.spec.errors import SpecError

RESULT = "@@submitit-result@@"
"""Prefix of the line of a log with the pickled result of a function."""
AT_A_TIME = 8
SILENT_SECONDS = 600.0
"""How long a server may be silent before asking for the state of a job fails."""
ONE_NODE = "a dstack run is one task on one machine: {name}={value} is not possible; submit several jobs"
logger = logging.getLogger(__name__)
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
        self._silent_since: float | None = None

    def update(self) -> None:
        """Asks about jobs that have not ended. A server that does not answer is asked again for a while."""
        asked = self._registered - self._finished
        self._num_calls += 1
        self._last_status_check = time.time()
        try:
            found = Api().runs(asked)
        except DstackRefusal:
            raise
        except DstackError as error:
            self._silent_since = self._silent_since or time.time()
            if time.time() - self._silent_since > SILENT_SECONDS:
                raise
            logger.warning("%s; the states of jobs may be out of date", error)
            return
        self._silent_since = None
        self.runs |= found
        for name in asked:
            self._note(name, found.get(name))

    def _note(self, name: str, run: Run | None) -> None:
        """Notes the state of a job. One that was there and is not any more was deleted."""
        if run is None and name not in self._info_dict:
            return
        state = STATES.get(str(run.get("status")), "UNKNOWN") if run else "CANCELLED"
        self._info_dict[name] = {"JobID": name, "State": state}
        if self.is_done(name, mode="cache"):
            self._finished.add(name)

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
            "nodes": "nodes",
            "tasks_per_node": "tasks_per_node",
        }

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        resources = {"memory_gb", "cpus", "gpus", "nodes", "tasks_per_node", "resources"}
        return {"name", "timeout_min", "profile", "code", "plan", "sources", *resources}

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        for name in ("nodes", "tasks_per_node"):
            if (value := kwargs.pop(name, 1)) != 1:
                raise SpecError(ONE_NODE.format(name=name, value=value))
        super()._internal_update_parameters(**kwargs)

    def _internal_process_submissions(
        self, delayed_submissions: Sequence[utils.DelayedSubmission]
    ) -> list[core.Job[Any]]:
        names = [run_name(self.parameters.get("name", "job")) for _ in delayed_submissions]
        pickles = {
            f"{name}_submitted.pkl": self._pickled(name, one)
            for name, one in zip(names, delayed_submissions, strict=True)
        }
        write_names(self.folder, names)
        try:
            spec = self._spec(pickles)
        except DstackError as error:
            raise Refused(str(error)) from error  # before anything was submitted
        try:
            submit_runs(Api(), names, spec)
        except DstackError:
            if not self._trains:
                Api().stop(names)  # nobody will ask for those that were started
            raise
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
        code = self.parameters.get("code")
        packed = {JOBS: wrapped(f"{JOBS}.tar.gz", {**pickles, **self._extra()})}
        if archive := packed_code(Path(code) if code else None):
            packed[CODE] = archive
        api = Api()
        uploaded = [{"id": api.upload(data), "path": f"{FOLDER}/{name}.tar.gz"} for name, data in packed.items()]
        made = configuration(self.profile, resources, list(packed))
        if not self._trains and "error" in self.profile.retry_on:
            made["env"][RAISED] = "0"
        return {"configuration": made, "file_archives": uploaded}

    @property
    def _trains(self) -> bool:
        """Whether this is for jobs of a plan, not for functions of a user."""
        return self.parameters.get("plan") is not None

    def _extra(self) -> dict[str, bytes]:
        """The plan, and the packages to install."""
        plan = {PLAN: Path(self.parameters["plan"]).read_bytes()} if self._trains else {}
        if not self.profile.install:
            return plan
        sources: Sequence[Path] = self.parameters.get("sources", ())
        needed = requirements(sources, extras_of(plan.get(PLAN, b"{}")), gpu=self.profile.asked_gpus > 0)
        return {**plan, REQUIREMENTS: needed.encode()}


@cache
def packed_code(folder: Path | None) -> bytes | None:
    """The archive of a frozen copy of the code, which never changes; of rldsl itself without one."""
    files = code_files(folder) if folder else library_files()
    return wrapped(f"{CODE}.tar.gz", files) if files else None


def submit_runs(api: Api, names: Sequence[str], spec: dict[str, Any]) -> None:
    """Starts runs concurrently; if one is refused, those after it are stopped and `Refused` is raised.

    After a lost answer the server is asked which runs it has. If one is missing, it may still arrive: `DstackError`.
    """

    def apply(name: str) -> DstackError | None:
        try:
            api.apply(name, {**spec, "configuration": {**spec["configuration"], "name": name}})
        except DstackError as error:
            return error
        return None

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        errors = dict(zip(names, pool.map(apply, names), strict=True))
    lost = [name for name, error in errors.items() if error and not isinstance(error, DstackRefusal)]
    arrived = api.runs(lost) if lost else {}
    if missing := [name for name in lost if name not in arrived]:
        raise errors[missing[0]] or DstackError("an answer was lost")
    refused = [name for name, error in errors.items() if isinstance(error, DstackRefusal)]
    if refused:
        first = names.index(refused[0])
        api.stop([name for name in names[first:] if name not in refused])
        raise Refused(str(errors[refused[0]]), names[:first])
