"""SLURM through Submitit: one array for each group of jobs that need the same, split where the site limits arrays."""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

from rldsl.launch.contract import Check, QueueSilent, QueueState, Refused
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.slurm_queue import array_of, array_size, ask, cancel_jobs, job_states
from rldsl.launch.task import Task
from rldsl.launch.tickets import JOBS, Ticket
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Slurm

FOREVER = 1_000_000
"""Times that a job may be requeued: as often as it needs."""
PASSED = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "MODULEPATH")
"""What every job gets of the environment that it is submitted from; SLURM adds its own variables."""
LAST_LINES = 8
MEMORY_SIGNS = ("Exceeded job memory limit", "oom_kill event", "oom-kill event", "OOM Killed")
"""What slurmstepd says when it, or the kernel, ends a job that has taken too much."""


@dataclass
class SlurmTask(Task):
    """A task that SLURM may evict to make room for others, without a warning that Submitit would understand."""

    def evicted(self) -> None:
        """Who was cancelled ends; who was not goes back to the queue, as after a warning."""
        try:
            state = ask(["squeue", "--noheader", "--format=%T", "--jobs", os.environ["SLURM_JOB_ID"]]).strip()
        except QueueSilent:
            return
        if state == "RUNNING":
            os.kill(os.getpid(), signal.SIGUSR2)


class SlurmBackend:
    """A cluster that this machine can submit to."""

    def __init__(self, launcher: Slurm, runs: Path) -> None:
        self.launcher, self.runs = launcher, runs

    def check(self) -> list[Check]:
        return [
            _checked("sbatch", ["sbatch", "--version"]),
            _checked("controller", ["scontrol", "ping"]),
            self._check_partition(),
            self._check_accounts(),
        ]

    def _check_accounts(self) -> Check:
        """Jobs run without them, too."""
        found = _checked("accounts", ["sacct", "--noheader", "--allocations", "--jobs=1"], "sacct says how jobs ended")
        none = f"none, so how jobs ended is known only while the queue remembers ({found.words})"
        return found if found.ok else Check("accounts", True, none)

    def _check_partition(self) -> Check:
        try:
            lines = self._partitions()
        except QueueSilent as error:
            return Check("partition", False, str(error))
        words = lines[0] if lines else f"there is no partition {self.launcher.partition or 'by default'}"
        return Check("partition", bool(lines), words)

    def offers(self, resources: Resources) -> list[str]:
        what = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self._asked(resources).items())
        try:
            return [f"each job asks for {what}", *self._partitions()]
        except QueueSilent as error:
            return [f"each job asks for {what}", str(error)]

    def _partitions(self) -> list[str]:
        """A line for the partition that jobs would go to."""
        chosen = [f"--partition={self.launcher.partition}"] if self.launcher.partition else []
        rows = [row.split("|") for row in ask(["sinfo", "--noheader", "--format=%P|%a|%D|%C|%G|%l", *chosen]).split()]
        rows = [row for row in rows if len(row) == 6 and (chosen or row[0].endswith("*"))]
        return [_partition(*row) for row in rows]

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        ids: list[str] = []
        try:
            size = array_size()
            for start in range(0, len(jobs), size):
                ids += self._submit_array(jobs[start : start + size], folder.resolve())
        except QueueSilent as error:
            raise Refused(str(error), ids) from None
        return ids

    def _submit_array(self, jobs: Sequence[Job], folder: Path) -> list[str]:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        executor = SlurmExecutor(_plain(folder), max_num_timeout=FOREVER)
        executor.update_parameters(**self.parameters(jobs))
        tasks = [SlurmTask(job.command, str(job.directory), job.cwd and str(job.cwd)) for job in jobs]
        try:
            with redirect_stderr(StringIO()):  # Submitit says there what it also raises
                return [job.job_id for job in executor.submit_array(tasks)]
        except (FailedJobError, FailedSubmissionError, OSError) as error:
            reason = str(error).strip().rpartition("\n")[2].removeprefix("sbatch: error: ")
            raise QueueSilent(f"sbatch refused the jobs: {reason}") from error

    def parameters(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """What Submitit is told of an array; nothing of it can be read as more than one word."""
        asked, job = self.launcher, jobs[0]
        minutes = max(1, math.ceil(asked.hours * 60))
        names = dict.fromkeys((*PASSED, *asked.pass_env))
        return {
            **self._asked(job.resources),
            "job_name": re.sub(r"[^A-Za-z0-9._-]", "-", job.name),
            "time": minutes,
            "signal_delay_s": min(asked.warning_seconds, minutes * 20),
            "array_parallelism": asked.parallel or len(jobs),
            "setup": list(chain(_exports({**asked.env, "PYTHONPATH": os.pathsep.join(job.path)}), asked.setup)),
            "srun_args": ["--export=ALL", f"--cpus-per-task={asked.cpus or job.resources.cpus}"],
            "stderr_to_stdout": True,
            "wckey": None,
            "additional_parameters": {"requeue": True, "export": ",".join(names)},
        }

    def _asked(self, resources: Resources) -> dict[str, Any]:
        """The resources of a job, by SLURM's names."""
        asked = self.launcher
        gpus = resources.gpus if asked.gpus is None else asked.gpus
        found = {
            "partition": asked.partition,
            "account": asked.account,
            "qos": asked.qos,
            "constraint": asked.constraint,
            "cpus_per_task": asked.cpus or resources.cpus,
            "gres": ":".join(filter(None, ["gpu", asked.gpu, str(gpus)])) if gpus else None,
            "mem": f"{math.ceil(asked.memory_gb * 1024)}M" if asked.memory_gb else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        return {id: self._with_memory(id, state) for id, state in job_states(ids).items()}

    def _with_memory(self, id: str, state: QueueState) -> QueueState:
        """Without cgroups the accounts know of a kill but not of its reason; the job's output has it."""
        if state.reason != "killed by SIGKILL":
            return state
        logs = (self.runs / JOBS).glob(f"*/{id}_0_log.out")
        for_memory = any(sign in log.read_text(errors="replace") for log in logs for sign in MEMORY_SIGNS)
        return state._replace(reason="out of memory") if for_memory else state

    def cancel(self, ids: Sequence[str]) -> None:
        cancel_jobs(ids)

    def fetch(self, tickets: Sequence[Ticket]) -> None:
        """The filesystem is shared: all is here already."""

    def last_words(self, ticket: Ticket) -> list[str]:
        folder = ticket.folder(self.runs)
        for name in (f"{ticket.job_id}_0_log.out", f"{array_of(ticket.job_id)}_0_log.out"):
            try:
                return (folder / name).read_text(errors="replace").splitlines()[-LAST_LINES:]
            except OSError:
                continue
        return []


def _plain(folder: Path) -> Path:
    """SLURM and Submitit read `%` in the name of a log as the beginning of a pattern, and a line ends a line."""
    if any(sign in str(folder) for sign in "%\n\r\\"):
        raise SpecError(f"SLURM cannot write logs to {folder}: choose a run directory without % and \\ in its path")
    return folder


def _exports(variables: dict[str, str]) -> Iterator[str]:
    return (f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def _checked(name: str, command: list[str], words: str | None = None) -> Check:
    try:
        answer = ask(command, timeout=15).strip().partition("\n")[0]
    except QueueSilent as error:
        return Check(name, False, str(error))
    return Check(name, True, words or answer)


def _partition(name: str, up: str, nodes: str, cores: str, gres: str, limit: str) -> str:
    """`cores` are allocated/idle/other/total."""
    _, idle, _, total = cores.split("/")
    gpus = "" if gres == "(null)" else f", {gres} each"
    return f"partition {name.rstrip('*')} is {up}: {nodes} nodes{gpus}, {idle} of {total} cores idle, limit {limit}"
