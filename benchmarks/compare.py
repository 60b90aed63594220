"""Training speed of rldsl compared with other libraries (peers): the command behind `make bench`.

Each workload is trained by rldsl and by every peer. They take turns of half a second on one core, so that changes in
the speed of the machine affect all of them, and the medians of several rounds are compared. Start-up, compilation and
the turns of the others are not counted. `four-seeds` and `search` are wall times on two cores, from the start of the
first process to the end of the last, one library after the other: four trainings, and a search of 16 trials. The peers
of `search` are the same trials of rldsl in separate processes, two at a time, and Optuna driving Stable-Baselines3.

Every training prints one line of JSON last: {"frames", "start", "end", "return", ...}, with the frames of all seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers import LACKS_WORK
from benchmarks.turns import Training, active_seconds, take_turns

GOALS = {
    ("ppo-cartpole", "sb3"): 5.0,
    ("ppo-cartpole", "sbx"): 4.0,
    ("a2c-cartpole", "sb3"): 5.0,
    ("four-seeds", "sb3"): 8.0,
    ("search", "separate"): 3.0,
    ("search", "optuna"): 3.0,
    ("ppo-hopper", "sb3"): 3.0,
    ("ppo-hopper", "sbx"): 2.0,
    ("dqn-cartpole", "sb3"): 5.0,
    ("dqn-cartpole", "sbx"): 4.0,
    ("sac-pendulum", "sb3"): 3.0,
    ("sac-pendulum", "sbx"): 1.3,
    ("sac-halfcheetah", "sb3"): 2.2,
    ("sac-halfcheetah", "sbx"): 1.15,
}
"""Goals: the speed of rldsl divided by that of the peer, by workload and peer."""

FRAMES = {
    "ppo-cartpole": 400_000,
    "a2c-cartpole": 400_000,
    "four-seeds": 200_000,
    "search": 50_000,
    "ppo-hopper": 81_920,
    "dqn-cartpole": 80_000,
    "sac-pendulum": 8_000,
    "sac-halfcheetah": 16_000,
}
"""Frames of a training of rldsl (per seed for `four-seeds`, per trial for `search`); `frames_of`: those of a peer.

rldsl logs 400 times per training and the peers never, so a training must be long enough for logging not to matter.
"""

OURS = "rldsl"
PEERS = ("sb3", "sbx")
SEARCH_PEERS = ("separate", "optuna")
TRIALS = 16
SEEDS = range(4)
IDLE_LOAD = 0.5
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Every process has one thread."""
ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("rldsl", "stable-baselines3", "sbx-rl", "optuna", "torch", "jax", "numpy", "gymnasium", "mujoco")


class CannotMeasure(Exception):
    """The speed cannot be measured, or not reliably; the message says why."""


class LacksWork(Exception):
    """A peer does not offer a workload; the message is its own."""


@dataclass(frozen=True)
class Run:
    side: str
    work: str
    frames: int
    seconds: float
    mean_return: float | None

    @property
    def fps(self) -> float:
        return self.frames / self.seconds


@dataclass(frozen=True)
class Row:
    """Median speeds of one workload: rldsl and one peer. Without a measurement of the peer there is no ratio."""

    work: str
    peer: str
    ours_fps: float
    peer_fps: float | None
    goal: float | None

    @property
    def ratio(self) -> float | None:
        return self.ours_fps / self.peer_fps if self.peer_fps else None

    @property
    def passed(self) -> bool | None:
        """None without a goal. A goal for a peer that was not measured is missed."""
        if self.goal is None:
            return None
        return self.ratio is not None and self.ratio >= self.goal


# --- numbers -----------------------------------------------------------------


def median_fps(runs: Iterable[Run], work: str, side: str) -> float | None:
    speeds = [run.fps for run in runs if (run.work, run.side) == (work, side)]
    return median(speeds) if speeds else None


def rows(runs: Sequence[Run], works: Iterable[str]) -> list[Row]:
    """One row per workload and peer, for the workloads that rldsl has run."""
    ours = {work: median_fps(runs, work, OURS) for work in works}
    return [
        Row(work, peer, fps, median_fps(runs, work, peer), GOALS.get((work, peer)))
        for work, fps in ours.items()
        if fps is not None
        for peer in peers_of(work)
    ]


def peers_of(work: str) -> tuple[str, ...]:
    return SEARCH_PEERS if work == "search" else PEERS


def table(lines: Iterable[Row]) -> str:
    """The rows as aligned text, with a dash for missing values."""
    cells = [("work", "rldsl fps", "peer", "peer fps", "ratio", "goal", "")]
    for row in lines:
        verdict = {True: "pass", False: "FAIL", None: ""}[row.passed]
        peer_fps, ratio, goal = _number(row.peer_fps, ",.0f"), _number(row.ratio, ".2f"), _number(row.goal, "g")
        cells.append((row.work, _number(row.ours_fps, ",.0f"), row.peer, peer_fps, ratio, goal, verdict))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    align = "<><>>><"
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, align, widths, strict=True)).rstrip()
        for line in cells
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


# --- trainings ---------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """Runs some libraries on one workload, on the given cores."""

    peers_python: Path
    cores: Sequence[int]

    def run(self, sides: Sequence[str], work: str, frames: int, seed: int) -> dict[str, Run | LacksWork]:
        if work == "four-seeds":
            return {side: self._four_seeds(side, frames) for side in sides}
        if work == "search":
            return {side: self._search(side, frames) for side in sides}
        with tempfile.TemporaryDirectory() as scratch:  # MuJoCo leaves a log where it runs
            trainings: dict[str, Training] = {}
            for side in sides:
                command = self._command(side, work, frames_of(side, work, frames), seed)
                trainings[side] = Training.start([*pin(self.cores[:1]), *command], Path(scratch, side), environment())
            take_turns(list(trainings.values()))
            return {side: self._outcome(side, work, frames, one) for side, one in trainings.items()}

    def _outcome(self, side: str, work: str, frames: int, training: Training) -> Run | LacksWork:
        try:
            report = _report(training.result())
        except LacksWork as lack:
            return lack
        seconds = active_seconds(report["start"], report["end"], training.pauses)
        return _checked(Run(side, work, report["frames"], seconds, report["return"]), frames_of(side, work, frames))

    def _four_seeds(self, side: str, frames: int) -> Run:
        start = time.perf_counter()
        if side == OURS:
            reports = [self._train(self._command(OURS, "four-seeds", frames, SEEDS[0]), self.cores)]
        else:
            commands = [[*self._command(side, "ppo-cartpole", frames, seed), "--cold"] for seed in SEEDS]
            reports = self._share_cores(commands)
        seconds = time.perf_counter() - start
        returns = [report["return"] for report in reports if report["return"] is not None]
        total = sum(report["frames"] for report in reports)
        mean_return = sum(returns) / len(returns) if returns else None
        return _checked(Run(side, "four-seeds", total, seconds, mean_return), frames * len(SEEDS))

    def _search(self, side: str, frames: int) -> Run:
        script = [str(self.peers_python), "-m", "benchmarks.optuna_search"]
        ours = [sys.executable, "-m", "benchmarks.ours", "search", *(["--separate"] if side == "separate" else [])]
        start = time.perf_counter()
        report = self._train([*(script if side == "optuna" else ours), "--frames", str(frames)], self.cores)
        seconds = time.perf_counter() - start
        return _checked(Run(side, "search", report["frames"], seconds, report["return"]), TRIALS * frames)

    def _share_cores(self, commands: Iterable[list[str]]) -> list[dict[str, Any]]:
        """As many processes at a time as there are cores, each on a core of its own."""
        free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for core in self.cores:
            free.put(core)

        def on_a_free_core(command: list[str]) -> dict[str, Any]:
            core = free.get()
            try:
                return self._train(command, [core])
            finally:
                free.put(core)

        with ThreadPoolExecutor(len(self.cores)) as pool:
            return list(pool.map(on_a_free_core, commands))

    def _command(self, side: str, work: str, frames: int, seed: int) -> list[str]:
        length = ["--frames", str(frames), "--seed", str(seed)]
        if side == OURS:
            return [sys.executable, "-m", "benchmarks.ours", work, *length]
        return [str(self.peers_python), "-m", "benchmarks.peers", work, "--peer", side, *length]

    @staticmethod
    def _train(command: Sequence[str], cores: Sequence[int]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as scratch:
            whole = [*pin(cores), *command]
            return _report(subprocess.run(whole, cwd=scratch, env=environment(), capture_output=True, text=True))


def environment() -> dict[str, str]:
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}


def frames_of(side: str, work: str, frames: int) -> int:
    """A peer trains fewer frames, so that all take equally long if rldsl just reaches its goal."""
    return max(1, round(frames / GOALS.get((work, side), 1.0)))


def _report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    last_words = (done.stderr.strip().splitlines() or ["no output"])[-1]
    if done.returncode == LACKS_WORK:
        raise LacksWork(last_words)
    if done.returncode:
        raise CannotMeasure(f"`{' '.join(done.args)}` failed: {last_words}")
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise CannotMeasure(f"`{' '.join(done.args)}` did not end with a line of JSON.") from None


def pin(cores: Sequence[int]) -> list[str]:
    """The prefix that pins a command to these cores; empty if the system has no taskset."""
    return ["taskset", "-c", ",".join(map(str, cores))] if shutil.which("taskset") else []


def _checked(run: Run, asked: int) -> Run:
    if run.frames < asked:
        raise CannotMeasure(f"{run.side} trained {run.frames} frames at {run.work}, of {asked} asked.")
    return run


def rounds(
    measure: Callable[[Sequence[str], str, int, int], dict[str, Run | LacksWork]], frames: dict[str, int], repeats: int
) -> tuple[list[Run], dict[str, str]]:
    """All runs, and the workloads that peers do not offer as {"workload peer": message}."""
    runs: list[Run] = []
    lacks: dict[str, str] = {}
    for work, length in frames.items():
        for seed in range(repeats):
            sides = [side for side in (OURS, *peers_of(work)) if f"{work} {side}" not in lacks]
            for side, outcome in measure(sides, work, length, seed).items():
                if isinstance(outcome, LacksWork):
                    lacks[f"{work} {side}"] = str(outcome)
                else:
                    runs.append(outcome)
                    print(f"{work} {side} {seed + 1}/{repeats}: {outcome.fps:,.0f} fps", file=sys.stderr)
    return runs, lacks


# --- the machine -------------------------------------------------------------


def machine(pythons: dict[str, Path]) -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load": os.getloadavg()[0],
        "pinned": bool(pin([0])),
        "versions": {name: versions(python) for name, python in pythons.items()},
    }


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions(python: Path) -> dict[str, str]:
    """Python's own version and those of the packages that its environment has."""
    script = (
        "import importlib.metadata as m, json, platform\n"
        "have = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}\n"
        f"found = {{p: have[p] for p in {PACKAGES!r} if p in have}}\n"
        "print(json.dumps({'python': platform.python_version(), **found}))\n"
    )
    done = subprocess.run([str(python), "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def refuse_if_busy(load: float) -> None:
    if load > IDLE_LOAD:
        raise CannotMeasure(
            f"The load average of the last minute is {load:.2f}, above {IDLE_LOAD}: no reliable measurement. "
            "Wait until the machine is idle, or pass --busy-ok."
        )


# --- the command -------------------------------------------------------------


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description="Compare the speed of rldsl and its peers.")
    with_goals = list(dict.fromkeys(work for work, _ in GOALS))
    parser.add_argument(
        "--works", nargs="+", choices=FRAMES, default=with_goals, help="workloads (default: those with goals)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds to take the median of (default: 3)")
    parser.add_argument("--frames-scale", type=float, default=1.0, help="factor for the number of frames")
    parser.add_argument("--peers-python", type=Path, default=ROOT / ".venv-peers" / "bin" / "python")
    parser.add_argument("--json", type=Path, help="a file for every run, the medians and the machine")
    parser.add_argument("--busy-ok", action="store_true", help="measure although the machine is busy")
    return parser


def compare(args: argparse.Namespace) -> list[Row]:
    if not args.busy_ok:
        refuse_if_busy(os.getloadavg()[0])
    peers_python = args.peers_python.absolute()
    if not peers_python.exists():
        raise CannotMeasure(f"The peers' environment is missing ({args.peers_python}): `make bench` makes it.")
    facts = machine({OURS: Path(sys.executable), "peers": peers_python})
    bench = Bench(peers_python, sorted(os.sched_getaffinity(0))[:2] if hasattr(os, "sched_getaffinity") else [0, 1])
    frames = {work: max(1, round(FRAMES[work] * args.frames_scale)) for work in args.works}

    runs, lacks = rounds(bench.run, frames, args.repeats)
    medians = rows(runs, args.works)
    print(table(medians))
    for what, sentence in lacks.items():
        print(f"{what}: {sentence}")
    if "four-seeds" in frames:
        print(f"four-seeds: wall time of four trainings, cores {bench.cores}, start-up included on both sides.")
    if "search" in frames:
        print(f"search: wall time of {TRIALS} trials, cores {bench.cores}, start-up included on all sides.")
    if args.json:
        lines = [{**asdict(row), "ratio": row.ratio, "passed": row.passed} for row in medians]
        record = {
            "machine": facts,
            "medians": lines,
            "lacks": lacks,
            "runs": [asdict(r) | {"fps": r.fps} for r in runs],
        }
        args.json.write_text(json.dumps(record, indent=2) + "\n")
    return medians


def main() -> int:
    """Exit code: 0 if every goal is met, 1 if one is missed, 2 if nothing could be measured."""
    args = arguments().parse_args()
    try:
        medians = compare(args)
    except CannotMeasure as reason:
        print(reason, file=sys.stderr)
        return 2
    return int(any(row.passed is False for row in medians))


if __name__ == "__main__":
    sys.exit(main())
