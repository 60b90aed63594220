"""The driver of a detached search, `python -m rldsl.launch.search_driver SEARCH --runs DIR`: a process or a light job.

It may be killed, requeued or started again at any time: the search continues from its journal.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Collection
from pathlib import Path

from rldsl.launch.code import FrozenCode
from rldsl.launch.observer import FollowedSession
from rldsl.launch.process_end import STOPPED
from rldsl.launch.search import SearchResult
from rldsl.launch.search_run import SearchRequest, run_search
from rldsl.launch.search_stages import next_stage
from rldsl.plan.overrides import Overridden
from rldsl.search.history import History
from rldsl.spec.errors import SpecError
from rldsl.spec.user_file import load_user_file
from rldsl.store.claim import HEARTBEAT, SILENCE
from rldsl.store.errors import AlreadyRunning, StoreError
from rldsl.store.journal import Event
from rldsl.store.search_dir import SearchDir

CLAIM_SECONDS = SILENCE + 2 * HEARTBEAT
"""How long to wait for a search that is claimed: its last driver may be about to end, or has ended without a trace."""


def main(arguments: list[str]) -> int:
    """Drives a search to its end; returns 0 when it is finished, `STOPPED` when asked to stop, 1 if it failed."""
    options = _parse(arguments)
    if os.environ.get("SLURM_RESTART_COUNT"):
        options.retry_failed = False  # it did so before it was requeued
    signal.signal(signal.SIGUSR2, lambda *_: os.kill(os.getpid(), signal.SIGTERM))  # the warning before a time limit
    forget_job()
    try:
        load_user_file(options.file)
        result = _run(_request(options))
    except (SpecError, StoreError) as error:
        _log(f"rldsl: {error}")
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    _log(f"{result.outcome}{f': {result.problem}' if result.problem else ''}")
    return {"finished": 0, "failed": 1}.get(result.outcome, STOPPED)


def forget_job() -> None:
    """Removes the variables of the SLURM job that this process is from its environment.

    `sbatch` would take them for options of the jobs that it submits.
    """
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SBATCH_", "SRUN_")) and name != "SLURM_CONF":
            del os.environ[name]


def _run(request: SearchRequest) -> SearchResult:
    """Runs a search and the stages that follow it."""
    while True:
        result = _run_stage(request)
        following = next_stage(request, result.history) if result.outcome == "finished" else None
        if following is None:
            return result
        request = following


def _run_stage(request: SearchRequest) -> SearchResult:
    deadline = time.monotonic() + CLAIM_SECONDS
    while True:
        try:
            return run_search(request, LogLines())
        except AlreadyRunning:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)


def _request(options: argparse.Namespace) -> SearchRequest:
    directory = SearchDir(options.search)
    return SearchRequest(
        search=Overridden(directory.experiment(), directory.overrides()),
        runs=options.runs,
        file=options.file,
        command=options.command,
        fail_fast=options.fail_fast,
        retry_failed=options.retry_failed,
        code=FrozenCode.of_this_process(options.code, options.file),
    )


class LogLines:
    """Prints the events of the journal for the log of the driver. A `SearchObserver`."""

    def journalled(self, event: Event, history: History) -> None:
        _log(" ".join(f"{name}={fact}" for name, fact in event.items()))

    def progress(self, history: History, running: Collection[FollowedSession]) -> None: ...

    def stopping(self, requests: int) -> None:
        _log("asked to stop")


def _log(line: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), line, flush=True)  # noqa: T201 (the log of the driver)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.launch.search_driver", description=__doc__)
    parser.add_argument("search", type=Path, help="the directory of the search")
    parser.add_argument("--runs", type=Path, required=True, help="the run directory")
    parser.add_argument("--file", type=Path, required=True, help="the experiment file, in the frozen copy of the code")
    parser.add_argument("--code", type=Path, required=True, help="the frozen copy of the code")
    parser.add_argument("--command", type=json.loads, required=True, help="the command of the user, as a JSON list")
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first trial that fails")
    parser.add_argument("--retry-failed", action="store_true", help="train failed trials again")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
