"""The worker, `python -m rldsl.train PLAN --runs DIR --session ID ...`: trains one pack in one process."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from rldsl.compile.activity import activity
from rldsl.envs.contract import EnvError
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session, session_id
from rldsl.spec.user_file import load_user_file
from rldsl.store.code_version import CodeVersions
from rldsl.store.errors import AlreadyRunning, StoreError
from rldsl.store.plan_file import read_plan
from rldsl.store.provenance import collect
from rldsl.store.sources import source_files
from rldsl.store.worktree import project_root
from rldsl.train.device import prepare_process
from rldsl.train.output import copy_output
from rldsl.train.pack import Pack, open_directories

WAIT_SECONDS = 90.0
"""How long a requeued job waits for the process of its last life: until its silence means that it is dead."""
STOPPED = 3
"""Exit code of a pack that was asked to stop and can be resumed."""


def main(arguments: list[str]) -> int:
    """Trains sessions of a plan; returns 0 when done or paused, `STOPPED` when asked to stop, 1 on failure."""
    options = _parse(arguments)
    stop = StopSignal()
    try:
        if options.file:
            load_user_file(options.file)
        sessions = planned_sessions(options.plan, options.session)
        prepare_process(sessions[0].trial)
        sources = source_files(options.file, project_root(options.file)) if options.file else []
        origin = collect(options.command or sys.argv, Path.cwd(), sources)
        directories = open_directories(options.runs, sessions)
        copy_output([directory.log for directory in directories[1:]])
        pack = Pack(sessions, directories, origin, CodeVersions(options.file), any_code=options.any_code)
        outcome = pack.run(lambda: stop.reason, options.until, options.wait)
    except AlreadyRunning as error:
        print(f"rldsl: {error}", file=sys.stderr)  # noqa: T201 (the log of the session)
        return STOPPED if stop.reason else 1
    except (SpecError, StoreError, EnvError) as error:
        print(f"rldsl: {error}", file=sys.stderr)  # noqa: T201 (the log of the session)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return {"done": 0, "paused": 0, "failed": 1}.get(outcome, STOPPED)


class StopSignal:
    """Records a signal that asks to stop; the training loop checks `reason` between two iterations.

    A compilation is ended at once.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
            signal.signal(number, self._record)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.reason = f"asked to stop ({signal.Signals(number).name})"
        activity.interrupt()


def planned_sessions(plan: Path, ids: list[str]) -> list[Session]:
    """The sessions of a plan file with these ids, in this order."""
    sessions: dict[str, Session] = {}
    for row in read_plan(plan, launchers=False).rows(only={id.rpartition("-s")[0] for id in ids}):
        for seed in row.seeds:
            if (id := session_id(row.id, seed)) in ids and id not in sessions:
                sessions[id] = row.session(seed)
    if missing := [id for id in ids if id not in sessions]:
        raise SpecError(f"the plan {plan} has no session {', '.join(missing)}")
    return [sessions[id] for id in ids]


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.train", description=__doc__)
    parser.add_argument("plan", type=Path, help="a plan file, as `plan --out` writes it")
    parser.add_argument("--runs", type=Path, required=True, help="the run directory")
    parser.add_argument("--session", action="append", required=True, help="id of a session; several make a pack")
    parser.add_argument("--until", type=int, metavar="FRAME", help="pause at this frame; by default, train to the end")
    parser.add_argument("--wait", type=float, default=WAIT_SECONDS, help="seconds to wait for a process that holds it")
    parser.add_argument("--any-code", action="store_true", help="resume sessions that other code started")
    parser.add_argument("--file", type=Path, help="the experiment file, for classes that it defines")
    parser.add_argument(
        "--command", type=json.loads, help="the command of the user, as a JSON list, for the provenance"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
