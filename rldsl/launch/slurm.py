"""The SLURM backend: one array for each group of jobs with equal resources."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rldsl.launch.backend import SETUP_FAILED, Check, LimitReached, QueueState, QueueUnavailable, Refused, Usage
from rldsl.launch.intents import Intent
from rldsl.launch.job_records import JOBS, JobRecord, read_records
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.slurm_job import write_jobs
from rldsl.launch.slurm_queue import (
    array_of,
    array_size,
    cancel_jobs,
    job_comments,
    job_states,
    job_usage,
    run_command,
    submit_script,
)
from rldsl.launch.slurm_script import batch_script, comment, resource_options
from rldsl.launch.submission_lock import request_fds
from rldsl.spec.errors import suggestion
from rldsl.spec.launcher import Slurm
from rldsl.store.files import replace_text

LAST_LINES = 8
MEMORY_SIGNS = ("Exceeded job memory limit", "oom_kill event", "oom-kill event", "OOM Killed")
"""Messages of slurmstepd about a job that was killed because of its memory."""


class SlurmBackend:
    """A SLURM cluster whose nodes share this filesystem."""

    dependencies = True

    def __init__(self, launcher: Slurm, runs: Path) -> None:
        self.launcher, self.runs = launcher, runs

    def check(self) -> list[Check]:
        return [
            _check_command("sbatch", ["sbatch", "--version"]),
            _check_command("controller", ["scontrol", "ping"]),
            self._check_partition(),
            self._check_accounts(),
            *self._check_container(),
        ]

    def _check_container(self) -> list[Check]:
        image = self.launcher.container
        if image is None or "://" in image:
            return []
        exists = Path(image).expanduser().is_file()
        return [Check("container", exists, image if exists else f"there is no {image}")]

    def _check_accounts(self) -> Check:
        """Accounting is optional: jobs run without it."""
        check = _check_command(
            "accounts", ["sacct", "--noheader", "--allocations", "--jobs=1"], "sacct says how jobs ended"
        )
        none = f"none, so how jobs ended is known only while the queue remembers ({check.words})"
        return check if check.ok else Check("accounts", False, none, optional=True)

    def _check_partition(self) -> Check:
        try:
            lines, missing = self._partitions()
        except QueueUnavailable as error:
            return Check("partition", False, str(error))
        return Check("partition", not missing, "; ".join([*missing, *lines]))

    def offers(self, resources: Resources) -> list[str]:
        wanted = [
            f"{name.replace('-', ' ')} {value}" for name, value in resource_options(self.launcher, resources).items()
        ]
        line = f"each job asks for {', '.join(wanted)}"
        try:
            lines, missing = self._partitions()
        except QueueUnavailable as error:
            return [line, str(error)]
        return [line, *missing, *lines]

    def _partitions(self) -> tuple[list[str], list[str]]:
        """A line for each partition that jobs would be submitted to, and one for each that does not exist."""
        answer = run_command(["sinfo", "--noheader", "--format=%P|%a|%D|%C|%G|%l"])
        rows = [row for row in (line.split("|") for line in answer.split()) if len(row) == 6]
        if self.launcher.partition is None:
            lines = [_partition(*row) for row in rows if row[0].endswith("*")]
            return lines, [] if lines else ["there is no default partition: set Slurm.partition"]
        wanted = self.launcher.partition.split(",")
        known = {row[0].rstrip("*") for row in rows}
        lines = [_partition(*row) for row in rows if row[0].rstrip("*") in wanted]
        missing = [f"there is no partition {name}; {suggestion(name, known)}" for name in wanted if name not in known]
        return lines, missing

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        """Submits arrays of at most the size that the site allows."""
        try:
            size = array_size()
        except QueueUnavailable as error:
            raise Refused(str(error)) from None
        after = self._whole_arrays(jobs[0].after)
        jobs = [replace(job, after=after) for job in jobs] if after else jobs
        ids: list[str] = []
        while len(ids) < len(jobs):
            size = min(size, len(jobs) - len(ids))
            try:
                ids += self._submit_array(jobs[len(ids) : len(ids) + size], folder.resolve(), len(ids))
            except LimitReached as error:  # an array is accepted as a whole or not at all
                if size == 1:
                    raise LimitReached(str(error), ids) from None
                size //= 2
        return ids

    def _whole_arrays(self, ids: Sequence[str]) -> tuple[str, ...]:
        """The jobs of arrays, with the array in place of its jobs where these are all of them."""
        if not ids:
            return ()
        sizes = Counter(array_of(record.job_id) for record in read_records(self.runs))
        arrays: dict[str, list[str]] = defaultdict(list)
        for id in dict.fromkeys(ids):
            arrays[array_of(id)].append(id)
        return tuple(
            one for array, tasks in arrays.items() for one in ([array] if len(tasks) == sizes[array] else tasks)
        )

    def _submit_array(self, jobs: Sequence[Job], folder: Path, start: int) -> list[str]:
        script = folder / f"{start}.sh"
        replace_text(script, batch_script(self.launcher, jobs, folder, start))
        write_jobs(jobs, folder, start, self.launcher.container)
        array = submit_script(script, request_fds(self.runs))
        return [f"{array}_{index}" for index, _ in enumerate(jobs)]

    def find(self, intent: Intent) -> dict[int, str]:
        """By the comment of the arrays."""
        arrays = {comment(intent.name, start): start for start in range(len(intent.jobs))}
        found = {}
        for id, words in job_comments():
            index = id.partition("_")[2]
            if words in arrays and index.isdecimal():
                found[arrays[words] + int(index)] = id
        return found

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        states = job_states(ids)
        explained = [id for id, state in states.items() if state.state == "failed" and _may_be_explained(state.reason)]
        outputs = self._outputs() if explained else {}
        return states | {id: _explained(states[id], outputs[id]) for id in explained if id in outputs}

    def _outputs(self) -> dict[str, Path]:
        """The output of every job, by its id."""
        return {path.stem: path for path in (self.runs / JOBS).glob("*/*.out")}

    def usage(self, ids: Sequence[str]) -> Usage:
        """The core-hours and GPU-hours of jobs, for `status`."""
        return job_usage(ids)

    def cancel(self, ids: Sequence[str]) -> None:
        cancel_jobs(ids)

    def fetch(self, records: Sequence[JobRecord]) -> None:
        """Nothing to do: the filesystem is shared."""

    def last_lines(self, record: JobRecord) -> list[str]:
        try:
            lines = (record.folder(self.runs) / f"{record.job_id}.out").read_text(errors="replace").splitlines()
        except OSError:
            return []
        return lines[-LAST_LINES:]


def _may_be_explained(reason: str) -> bool:
    return reason == "killed by SIGKILL" or reason.startswith("exit ")


def _explained(state: QueueState, output: Path) -> QueueState:
    """A job with the reason that is in its output: a `setup` line, or its memory, which accounts may not know."""
    text = output.read_text(errors="replace")
    if state.reason == "killed by SIGKILL":
        return state._replace(reason="out of memory") if any(sign in text for sign in MEMORY_SIGNS) else state
    last = text.rstrip().rpartition("\n")[2].removeprefix("rldsl: ")
    return state._replace(reason=last) if last.startswith(SETUP_FAILED) else state


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
