"""What SLURM says of jobs: `squeue` for those that it still has in mind, `sacct` for how the others ended."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence

from rldsl.launch.contract import QueueSilent, QueueState, State

TIMEOUT = 60.0
SQUEUE = ["squeue", "--me", "--noheader", "--array", "--states=all", "--format=%i|%T|%r|%N"]
SACCT = ["sacct", "--noheader", "--parsable2", "--format=JobID,State,ExitCode,NodeList"]
MOST_IDS = 1000
"""Ids in one command, whose length the system limits."""

PENDING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SUSPENDED")
RUNNING = ("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING")
ENDS: dict[str, tuple[State, str]] = {
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
NO_ACCOUNTS = "why is not known: SLURM keeps no accounts here"


def ask(command: Sequence[str], timeout: float = TIMEOUT) -> str:
    """What a command of SLURM answers."""
    if shutil.which(command[0]) is None:
        raise QueueSilent(f"there is no {command[0]} on this machine: SLURM is used from a login node of its cluster")
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=True, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise QueueSilent(f"{command[0]} did not answer in {timeout:.0f} seconds") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().rpartition("\n")[2] or f"it ended with {error.returncode}"
        raise QueueSilent(f"{command[0]} failed: {reason}") from None
    return answer.stdout


def job_states(ids: Sequence[str]) -> dict[str, QueueState]:
    """How these jobs stand, by one call to `squeue` and at most one to `sacct`."""
    wanted = set(ids)
    found = {id: state for id, state in _in_queue(ask(SQUEUE)) if id in wanted}
    ended = [id for id in ids if id not in found or not found[id].live]
    return {**found, **_accounts(ended, found)} if ended else found


def _in_queue(text: str) -> Iterator[tuple[str, QueueState]]:
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) == 4:
            id, state, reason, node = cells
            yield id.strip(), meaning(state, node=node, waits=reason)


def _accounts(ids: Sequence[str], known: dict[str, QueueState]) -> dict[str, QueueState]:
    """How jobs ended; where SLURM keeps no accounts, as far as the queue still knows."""
    try:
        text = "".join(ask([*SACCT, f"--jobs={','.join(some)}"]) for some in _batches(sorted(map(array_of, ids))))
    except QueueSilent:
        return {id: known[id] if id in known else QueueState("unknown", NO_ACCOUNTS) for id in ids}
    accounts = parse_sacct(text)
    return {id: accounts[id] for id in ids if id in accounts}


def parse_sacct(text: str) -> dict[str, QueueState]:
    """Jobs by id, out of the lines of jobs and their steps: a step may know better why it ended."""
    found: dict[str, QueueState] = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) != 4:
            continue
        id, step = cells[0].partition(".")[::2]
        for one in _expanded(id):
            if not step:
                found[one] = meaning(*cells[1:])
            elif one in found and found[one].state == "failed":
                found[one] = _refined(found[one], cells[1], cells[2])
    return found


def _refined(job: QueueState, state: str, exit_code: str) -> QueueState:
    """A job that failed, with what one of its steps knows better: memory, or the signal that killed it."""
    if state.startswith("OUT_OF_ME"):
        return job._replace(reason="out of memory")
    words = exit_words(exit_code)
    return job._replace(reason=words) if words.startswith("killed") and job.reason.startswith("exit") else job


def meaning(state: str, exit_code: str = "", node: str = "", waits: str = "") -> QueueState:
    """The words of the contract for SLURM's own: `CANCELLED by 0`, `OUT_OF_MEMORY`, exit code `1:0`."""
    name = state.partition(" ")[0].rstrip("+")
    where = "" if node in ("None assigned", "(null)") else node
    if name in PENDING:
        return QueueState("pending", "" if waits in ("", "None") else waits)
    if name in RUNNING:
        return QueueState("running", where=where)
    if name in ENDS:
        return QueueState(*ENDS[name], where)
    return QueueState("failed", exit_words(exit_code), where) if name == "FAILED" else QueueState()


def exit_words(code: str) -> str:
    """`exit 1` for `1:0`, `killed by SIGKILL` for `0:9`."""
    status, _, number = code.partition(":")
    if number in ("", "0"):
        return f"exit {status}" if status else "failed"
    try:
        return f"killed by {signal.Signals(int(number)).name}"
    except ValueError:
        return f"killed by signal {number}"


def array_of(id: str) -> str:
    """The array that a job is a task of; itself for one that is not."""
    return id.partition("_")[0]


def _expanded(id: str) -> Iterator[str]:
    """`12_[3-5,9%2]` stands for tasks that have not begun."""
    match = re.fullmatch(r"(\d+)_\[([\d,:-]+)(%\d+)?\]", id)
    if match is None:
        yield id
        return
    for part in match[2].split(","):
        first, _, last = part.partition(":")[0].partition("-")
        yield from (f"{match[1]}_{index}" for index in range(int(first), int(last or first) + 1))


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MOST_IDS):
        yield unique[start : start + MOST_IDS]


def cancel_jobs(ids: Sequence[str]) -> None:
    """Cancels them by few calls."""
    for some in _batches(ids):
        ask(["scancel", *some])


def array_size() -> int:
    """How many tasks an array may have at this site."""
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", ask(["scontrol", "show", "config"]), re.MULTILINE)
    return max(1, int(match[1])) if match else 1001
