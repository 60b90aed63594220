"""The SLURM backend, through Submitit: one array for each group of jobs with equal resources."""

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

from rldsl.launch.backend import Check, QueueState, QueueUnavailable, Refused
from rldsl.launch.job_records import JOBS, JobRecord
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.slurm_queue import array_of, array_size, cancel_jobs, job_states, run_command
from rldsl.launch.task import Task
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Slurm

MAX_REQUEUES = 1_000_000
"""Jobs are requeued as often as their sessions need."""
PASSED_ENV = (
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "MODULEPATH",
)
"""Environment variables that every job gets from the submitting process; SLURM adds its own."""
LAST_LINES = 8
MEMORY_SIGNS = ("Exceeded job memory limit", "oom_kill event", "oom-kill event", "OOM Killed")
"""Messages of slurmstepd about a job that was killed because of its memory."""


@dataclass
class SlurmTask(Task):
    """A task that SLURM may preempt with SIGTERM, which Submitit does not handle."""

    def evicted(self) -> None:
        """Requeues the job, as after a time limit, unless it was cancelled."""
        try:
            state = run_command(["squeue", "--noheader", "--format=%T", "--jobs", os.environ["SLURM_JOB_ID"]]).strip()
        except QueueUnavailable:
            return
        if state == "RUNNING":
            os.kill(os.getpid(), signal.SIGUSR2)


class SlurmBackend:
    """A SLURM cluster whose nodes share this filesystem."""

    def __init__(self, launcher: Slurm, runs: Path) -> None:
        self.launcher, self.runs = launcher, runs

    def check(self) -> list[Check]:
        return [
            _check_command("sbatch", ["sbatch", "--version"]),
            _check_command("controller", ["scontrol", "ping"]),
            self._check_partition(),
            self._check_accounts(),
        ]

    def _check_accounts(self) -> Check:
        """Accounting is optional: jobs run without it."""
        check = _check_command(
            "accounts", ["sacct", "--noheader", "--allocations", "--jobs=1"], "sacct says how jobs ended"
        )
        none = f"none, so how jobs ended is known only while the queue remembers ({check.words})"
        return check if check.ok else Check("accounts", True, none)

    def _check_partition(self) -> Check:
        try:
            lines = self._partitions()
        except QueueUnavailable as error:
            return Check("partition", False, str(error))
        words = lines[0] if lines else f"there is no partition {self.launcher.partition or 'by default'}"
        return Check("partition", bool(lines), words)

    def offers(self, resources: Resources) -> list[str]:
        wanted = [f"{name.replace('_', ' ')} {value}" for name, value in self._resources(resources).items()]
        line = f"each job asks for {', '.join(wanted)}"
        try:
            return [line, *self._partitions()]
        except QueueUnavailable as error:
            return [line, str(error)]

    def _partitions(self) -> list[str]:
        """A line for the partition that jobs would be submitted to."""
        chosen = [f"--partition={self.launcher.partition}"] if self.launcher.partition else []
        rows = [
            row.split("|")
            for row in run_command(["sinfo", "--noheader", "--format=%P|%a|%D|%C|%G|%l", *chosen]).split()
        ]
        rows = [row for row in rows if len(row) == 6 and (chosen or row[0].endswith("*"))]
        return [_partition(*row) for row in rows]

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        ids: list[str] = []
        try:
            size = array_size()
            for start in range(0, len(jobs), size):
                ids += self._submit_array(jobs[start : start + size], folder.resolve())
        except QueueUnavailable as error:
            raise Refused(str(error), ids) from None
        return ids

    def _submit_array(self, jobs: Sequence[Job], folder: Path) -> list[str]:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        executor = SlurmExecutor(_log_folder(folder), max_num_timeout=MAX_REQUEUES)
        executor.update_parameters(**self.parameters(jobs))
        tasks = [SlurmTask(job.command, str(job.directory), str(job.cwd) if job.cwd else None) for job in jobs]
        try:
            with redirect_stderr(StringIO()):  # Submitit also prints the error that it raises
                return [job.job_id for job in executor.submit_array(tasks)]
        except (FailedJobError, FailedSubmissionError, OSError) as error:
            reason = str(error).strip().rpartition("\n")[2].removeprefix("sbatch: error: ")
            raise QueueUnavailable(f"sbatch refused the jobs: {reason}") from error

    def parameters(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """The parameters of an array for Submitit."""
        launcher, job = self.launcher, jobs[0]
        minutes = max(1, math.ceil(launcher.hours * 60))
        names = dict.fromkeys((*PASSED_ENV, *launcher.pass_env))
        return {
            **self._resources(job.resources),
            "job_name": re.sub(r"[^A-Za-z0-9._-]", "-", job.name),
            "time": minutes,
            "signal_delay_s": min(launcher.warning_seconds, minutes * 20),
            "array_parallelism": launcher.parallel or len(jobs),
            "setup": list(chain(_exports({**launcher.env, "PYTHONPATH": os.pathsep.join(job.path)}), launcher.setup)),
            "srun_args": ["--export=ALL", f"--cpus-per-task={launcher.cpus or job.resources.cpus}"],
            "stderr_to_stdout": True,
            "wckey": None,
            "additional_parameters": {"requeue": True, "export": ",".join(names)},
        }

    def _resources(self, resources: Resources) -> dict[str, Any]:
        """The resources of a job under SLURM's names."""
        launcher = self.launcher
        gpus = resources.gpus if launcher.gpus is None else launcher.gpus
        wanted = {
            "partition": launcher.partition,
            "account": launcher.account,
            "qos": launcher.qos,
            "constraint": launcher.constraint,
            "cpus_per_task": launcher.cpus or resources.cpus,
            "gres": ":".join(filter(None, ["gpu", launcher.gpu, str(gpus)])) if gpus else None,
            "mem": f"{math.ceil(launcher.memory_gb * 1024)}M" if launcher.memory_gb else None,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        return {id: self._with_memory(id, state) for id, state in job_states(ids).items()}

    def _with_memory(self, id: str, state: QueueState) -> QueueState:
        """Without cgroups, sacct reports a kill but not that it was for memory; the job's output says so."""
        if state.reason != "killed by SIGKILL":
            return state
        logs = (self.runs / JOBS).glob(f"*/{id}_0_log.out")
        out_of_memory = any(sign in log.read_text(errors="replace") for log in logs for sign in MEMORY_SIGNS)
        return state._replace(reason="out of memory") if out_of_memory else state

    def cancel(self, ids: Sequence[str]) -> None:
        cancel_jobs(ids)

    def fetch(self, records: Sequence[JobRecord]) -> None:
        """Nothing to do: the filesystem is shared."""

    def last_lines(self, record: JobRecord) -> list[str]:
        folder = record.folder(self.runs)
        for name in (f"{record.job_id}_0_log.out", f"{array_of(record.job_id)}_0_log.out"):
            try:
                return (folder / name).read_text(errors="replace").splitlines()[-LAST_LINES:]
            except OSError:
                continue
        return []


def _log_folder(folder: Path) -> Path:
    """Refuses paths that SLURM would not take literally: `%` begins a pattern in the name of a log."""
    if any(sign in str(folder) for sign in "%\n\r\\"):
        raise SpecError(f"SLURM cannot write logs to {folder}: choose a run directory without % and \\ in its path")
    return folder


def _exports(variables: dict[str, str]) -> Iterator[str]:
    return (f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def _check_command(name: str, command: list[str], words: str | None = None) -> Check:
    try:
        answer = run_command(command, timeout=15).strip().partition("\n")[0]
    except QueueUnavailable as error:
        return Check(name, False, str(error))
    return Check(name, True, words or answer)


def _partition(name: str, up: str, nodes: str, cores: str, gres: str, limit: str) -> str:
    """A line for `plan --on`; `cores` is allocated/idle/other/total."""
    _, idle, _, total = cores.split("/")
    gpus = "" if gres == "(null)" else f", {gres} each"
    return f"partition {name.rstrip('*')} is {up}: {nodes} nodes{gpus}, {idle} of {total} cores idle, limit {limit}"
