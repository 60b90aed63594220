"""States of SLURM jobs: `squeue` for jobs that the controller still knows, `sacct` for how the others ended."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rldsl.launch.backend import JobState, LimitReached, QueueState, QueueUnavailable, Usage
from rldsl.launch.process_end import signal_name

TIMEOUT = 60.0
SQUEUE = ["squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%T|%r|%N"]
SACCT = ["sacct", "--noheader", "--parsable2", "--format=JobID,State,ExitCode,NodeList"]
MOST_TASKS = 100_000
"""Tasks of an array: an answer with more is nonsense."""
USAGE = ["sacct", "--noheader", "--parsable2", "--allocations", "--duplicates"]
MOST_IDS = 1000
"""Ids in one command line, whose length the system limits."""

PENDING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SUSPENDED")
RUNNING = ("RUNNING", "SIGNALING", "STOPPED", "RESIZING")
COMPLETING = ("COMPLETING", "STAGE_OUT")
ENDS: dict[str, tuple[JobState, str]] = {
    "COMPLETED": ("done", ""),
    "CANCELLED": ("cancelled", "cancelled"),
    "OUT_OF_MEMORY": ("failed", "out of memory"),
    "NODE_FAIL": ("failed", "node failure"),
    "BOOT_FAIL": ("failed", "node failure"),
    "TIMEOUT": ("failed", "time limit"),
    "DEADLINE": ("failed", "deadline"),
    "PREEMPTED": ("failed", "preempted"),
    "REVOKED": ("cancelled", "revoked"),
}
SUBMIT_LIMIT = re.compile(r"\w*MaxSubmitJob\w*")
"""The reason of sbatch for the limits of an association (AssocMaxSubmitJobLimit), a user, an account or a QOS."""
NO_ACCOUNTS = "why is not known: SLURM keeps no accounts here"


class CommandFailed(QueueUnavailable):
    """A SLURM command ended with an error; `output` is all that it printed there."""

    def __init__(self, sentence: str, output: str) -> None:
        super().__init__(sentence)
        self.output = output


def run_command(command: Sequence[str], timeout: float = TIMEOUT, pass_fds: Sequence[int] = ()) -> str:
    """The output of a SLURM command. Ctrl-C in the terminal does not reach it."""
    if shutil.which(command[0]) is None:
        raise QueueUnavailable(
            f"there is no {command[0]} on this machine: SLURM is used from a login node of its cluster"
        )
    try:
        completed = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=True,
            stdin=subprocess.DEVNULL,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise QueueUnavailable(f"{command[0]} did not answer in {timeout:.0f} seconds") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().rpartition("\n")[2] or f"it ended with {error.returncode}"
        raise CommandFailed(f"{command[0]} failed: {reason}", error.stderr) from None
    return completed.stdout


def submit_script(script: Path, pass_fds: Sequence[int]) -> str:
    """The id of the array that sbatch has submitted."""
    try:
        answer = run_command(["sbatch", "--parsable", str(script)], pass_fds=pass_fds)
    except CommandFailed as error:
        words = str(error).removeprefix("sbatch failed: ").removeprefix("sbatch: error: ")
        if limit := SUBMIT_LIMIT.search(error.output):
            raise LimitReached(f"the site limits the number of submitted jobs ({limit[0]})") from None
        raise QueueUnavailable(f"sbatch refused the jobs: {words}") from None
    return answer.strip().partition(";")[0]


def job_comments() -> list[tuple[str, str]]:
    """The jobs of this user that have not ended: their ids and comments."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i|%k"]
    rows = (line.partition("|") for line in run_command(command).splitlines())
    return [(one, words.strip()) for id, _, words in rows for one in _expanded(id.strip())]


def job_states(ids: Sequence[str]) -> dict[str, QueueState]:
    """The states of these jobs, with one call to `squeue` and at most one to `sacct`."""
    wanted = set(ids)
    states = {id: state for id, state in _in_queue(run_command(SQUEUE)) if id in wanted}
    ended = [id for id in ids if id not in states or not states[id].live]
    return {**states, **_accounts(ended, states)} if ended else states


def _in_queue(text: str) -> Iterator[tuple[str, QueueState]]:
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) == 4:
            id, state, reason, node = cells
            yield id.strip(), parse_state(state, node=node, waits=reason)


def _accounts(ids: Sequence[str], known: dict[str, QueueState]) -> dict[str, QueueState]:
    """How jobs ended, by `sacct`; without accounting, by what `squeue` still shows."""
    try:
        text = "".join(
            run_command([*SACCT, f"--jobs={','.join(some)}"]) for some in _batches(sorted(map(array_of, ids)))
        )
    except QueueUnavailable:
        return {id: known[id] if id in known else QueueState("unknown", NO_ACCOUNTS) for id in ids}
    accounts = parse_sacct(text)
    return {id: accounts[id] for id in ids if id in accounts}


def parse_sacct(text: str) -> dict[str, QueueState]:
    """Jobs by id, from the lines of jobs and their steps: the line of a step may have the more precise reason."""
    states: dict[str, QueueState] = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) != 4:
            continue
        id, step = cells[0].partition(".")[::2]
        for one in _expanded(id):
            if not step:
                states[one] = parse_state(*cells[1:])
            elif one in states and states[one].state == "failed":
                states[one] = _refined(states[one], cells[1], cells[2])
    return states


def _refined(job: QueueState, state: str, exit_code: str) -> QueueState:
    """A failed job with the reason of one of its steps, if that is out of memory or a signal."""
    if state.startswith("OUT_OF_ME"):
        return job._replace(reason="out of memory")
    words = parse_exit_code(exit_code)
    return job._replace(reason=words) if words.startswith("killed") and job.reason.startswith("exit") else job


def parse_state(state: str, exit_code: str = "", node: str = "", waits: str = "") -> QueueState:
    """The `QueueState` for a state of SLURM, such as `CANCELLED by 0` or `OUT_OF_MEMORY`, and an exit code `1:0`."""
    name = state.partition(" ")[0].rstrip("+")
    where = "" if node in ("None assigned", "(null)") else node
    if name in PENDING:
        return QueueState("pending", "" if waits in ("", "None") else waits)
    if name in RUNNING:
        return QueueState("running", where=where)
    if name in COMPLETING:
        return QueueState("completing", where=where)
    if name in ENDS:
        return QueueState(*ENDS[name], where)
    return QueueState("failed", parse_exit_code(exit_code), where) if name == "FAILED" else QueueState()


def parse_exit_code(code: str) -> str:
    """`exit 1` for `1:0`, `killed by SIGKILL` for `0:9`."""
    status, _, number = code.partition(":")
    if not (status.isascii() and status.isdigit() and number.isascii() and (number.isdigit() or not number)):
        return "failed"
    if number in ("", "0"):
        return f"exit {status}"
    return f"killed by {signal_name(int(number))}"


def job_usage(ids: Sequence[str]) -> Usage:
    """What these jobs have used in all their lives, by `sacct`; nothing if SLURM keeps no accounts."""
    wanted, cores, gpus = set(ids), 0.0, 0.0
    for some in _batches(sorted(map(array_of, ids))):
        try:
            text = run_command([*USAGE, "--format=JobID,CPUTimeRAW,ElapsedRaw,AllocTRES", f"--jobs={','.join(some)}"])
        except QueueUnavailable:
            return Usage()
        for id, core_seconds, seconds, tres in (line.split("|") for line in text.splitlines() if line.count("|") == 3):
            if id in wanted:
                cores += float(core_seconds or 0)
                gpu = re.search(r"gres/gpu=(\d+)", tres)
                gpus += float(seconds or 0) * int(gpu[1]) if gpu else 0.0
    return Usage(cores / 3600, gpus / 3600)


def array_of(id: str) -> str:
    """The id of the array that a job belongs to; its own id if it is not part of an array."""
    return id.partition("_")[0]


def _expanded(id: str) -> Iterator[str]:
    """All ids of `12_[3-5,9%2]`, which stands for array tasks that have not begun."""
    match = re.fullmatch(r"(\d+)_\[(\d+(?:[-:,]\d+)*)(%\d+)?\]", id, re.ASCII)
    if match is None:
        yield id
        return
    for part in match[2].split(","):
        first, _, last = part.partition(":")[0].partition("-")
        end = min(int(last.partition("-")[0] or first), int(first) + MOST_TASKS)
        yield from (f"{match[1]}_{index}" for index in range(int(first), end + 1))


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MOST_IDS):
        yield unique[start : start + MOST_IDS]


def cancel_jobs(ids: Sequence[str]) -> None:
    """Cancels jobs with few calls."""
    for some in _batches(ids):
        run_command(["scancel", *some])


def array_size() -> int:
    """The maximum size of an array at this site."""
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", run_command(["scontrol", "show", "config"]), re.MULTILINE)
    return max(1, int(match[1])) if match else 1001
