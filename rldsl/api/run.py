"""`run`: trains experiments in this process."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from rldsl.api.runs import Run
from rldsl.builders.after import check_after
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.launch import machine
from rldsl.launch.initial import fetch_initial
from rldsl.launch.other_code import settle
from rldsl.launch.prepare import prepare_stages
from rldsl.launch.select import TRAIN, select_sessions
from rldsl.plan.after import Stage, in_order
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.overrides import Assignment, Options, Overridden, apply
from rldsl.plan.packs import make_packs
from rldsl.plan.plan import make_plan
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment

INTERRUPTED = "asked to stop (KeyboardInterrupt)"


def run(
    *experiments: ExperimentBuilder | Experiment,
    frames: float | None = None,
    seeds: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    runs: str | Path = "runs",
    verbose: bool = True,
    other_code: Literal["refuse", "continue", "redo"] = "refuse",
) -> list[Run]:
    """Trains experiments in this process, and returns a `Run` for each of their sessions.

    The sessions are those that the command `train` would train, with the same ids and directories: finished ones are
    kept, interrupted ones resumed, failed ones tried again, and those that another process is training left to it.
    Packs of sessions train one after the other. `frames`, `seeds` and `overrides={"agent.gamma": 0.995}` override
    fields as `--frames`, `--seeds` and `--set` do.

    `other_code` says what happens to sessions that other code has trained: they are refused with an error, continued
    with the present code (`--continue`), or set aside and trained again (`--redo`).

    An exception in an agent or environment is raised here, so `breakpoint()` and debuggers work. Ctrl-C finishes the
    iteration, writes a checkpoint and raises `KeyboardInterrupt`; a second Ctrl-C interrupts at once.

    A search is run as by the command `search`: a trial that raises an exception has failed, and the search continues.
    """
    from rldsl.api.search import search_in_process

    chosen = _overridden(experiments, frames, seeds, overrides or {})
    plan = make_plan([one for one in chosen if not one.experiment.sampled])
    directory = Path(runs)
    states = (*TRAIN, "failed")
    existing = settle(plan, directory, _script(), states, other_code)
    selected = select_sessions(plan, existing, states).sessions
    ordered = prepare_stages(in_order(plan, selected, existing), existing)
    found: list[str] = []
    with noted_interrupt() as interrupt, _kept_torch_threads():
        for pack in _packs(ordered):
            fetch_initial(pack, directory)
            train_pack(pack, directory, interrupt, verbose, any_code=other_code == "continue")
            if interrupt.reason is not None:
                raise KeyboardInterrupt
        for one in chosen:
            if one.experiment.sampled:
                found += search_in_process(one, directory, interrupt, verbose)
    trained = [planned.directory for planned in Existing(directory).sessions(plan)]
    return [Run(directory / session) for session in dict.fromkeys([*trained, *found])]


def _packs(ordered: Sequence[Stage]) -> list[list[PlannedSession]]:
    """Packs in the order in which they can be trained."""
    gpu = bool(machine.gpus())
    return [pack for stage in ordered for pack in make_packs(stage.sessions, processes=1, gpu=gpu)]


def _overridden(
    experiments: Sequence[ExperimentBuilder | Experiment],
    frames: float | None,
    seeds: int | None,
    overrides: Mapping[str, Any],
) -> list[Overridden]:
    if not experiments:
        raise SpecError("run needs an experiment")
    built = [one.build() if isinstance(one, ExperimentBuilder) else one for one in experiments]
    for one in built:
        if not isinstance(one, Experiment):
            raise SpecError(f"run(...) takes experiments, not a {type(one).__name__}: write run(a, b)")
    check_after(experiments, built, "run(...)")
    given = [Assignment(path, value, f"--set {path}={value}") for path, value in overrides.items()]
    if frames is not None:
        given.append(Assignment("budget.frames", frames, f"--frames {frames}"))
    if seeds is not None:
        given.append(Assignment("seeds.count", seeds, f"--seeds {seeds}"))
    return apply(built, [Options(given)] if given else [])


def _script() -> Path | None:
    """The Python file that runs."""
    script = Path(sys.argv[0])
    return script if script.suffix == ".py" and script.is_file() else None


def train_pack(
    pack: Sequence[PlannedSession],
    runs: Path,
    interrupt: Interrupt,
    verbose: bool,
    until: int | None = None,
    any_code: bool = True,
) -> None:
    """Trains sessions together in this process, to the end or up to a frame."""
    from rldsl.store.code_version import CodeVersions
    from rldsl.store.provenance import collect
    from rldsl.store.sources import source_files
    from rldsl.store.worktree import project_root
    from rldsl.train.pack import Pack, open_directories

    sessions = [session for one in pack for session in one.row.sessions() if session.seed == one.seed]
    script = _script()
    origin = collect(sys.argv, Path.cwd(), source_files(script, project_root(script)) if script else [])
    directories = open_directories(runs, sessions)
    if verbose:
        names = ", ".join(dict.fromkeys(session.experiment for session in sessions))
        seeds = ", ".join(str(session.seed) for session in sessions)
        print(f"training {names}, seed{'s' if len(sessions) > 1 else ''} {seeds}", flush=True)  # noqa: T201
    Pack(sessions, directories, origin, CodeVersions(script), any_code=any_code).run(lambda: interrupt.reason, until)
    if verbose:
        for directory in directories:
            trained = Run(directory.path)
            print(f"{trained.state}: {trained.experiment} seed {trained.seed}, return {trained.score:.1f}")  # noqa: T201


class Interrupt:
    """Why training should stop after the present iteration; None: it should not."""

    reason: str | None = None


@contextmanager
def noted_interrupt() -> Iterator[Interrupt]:
    """Inside, the first Ctrl-C is noted and the next one raises. Only the main thread may handle signals."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    previous = signal.getsignal(signal.SIGINT) or signal.default_int_handler

    def note(number: int, frame: FrameType | None) -> None:
        from rldsl.compile import activity

        interrupt.reason = INTERRUPTED
        signal.signal(signal.SIGINT, previous)
        activity.interrupt()

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _kept_torch_threads() -> Iterator[None]:
    """Training sets the number of torch's threads, which is the caller's afterwards."""
    import torch

    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
