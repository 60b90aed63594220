"""What the AVX-512 kernels of `rldsl/compile/sparse_gemm.h` gain: `python -m benchmarks.ablation`.

Every workload of `benchmarks/ours.py` is trained with the default settings and with `RLDSL_PRODUCTS=torch`. The two
trainings take turns of half a second on one core, so that changes in the speed of the machine affect both. The result,
with all runs and the medians, is written to `results/ablation.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.compare import FRAMES, ROOT, CannotMeasure, cpu_model, environment, pin, refuse_if_busy
from benchmarks.turns import Training, active_seconds, take_turns

SIDES: dict[str, dict[str, str]] = {"default": {}, "torch": {"RLDSL_PRODUCTS": "torch"}}
"""The environment variables of each side."""
WORKS = [work for work in FRAMES if work not in ("four-seeds", "search")]
Run = dict[str, Any]


def train_both(work: str, frames: int, seed: int) -> list[Run]:
    """One training of each side, taking turns."""
    with tempfile.TemporaryDirectory() as scratch:
        trainings: dict[str, Training] = {}
        for side, variables in SIDES.items():
            command = [sys.executable, "-m", "benchmarks.ours", work, "--frames", str(frames), "--seed", str(seed)]
            env = {name: value for name, value in environment().items() if name != "RLDSL_PRODUCTS"}
            trainings[side] = Training.start([*pin([0]), *command], Path(scratch, side), env | variables)
        take_turns(list(trainings.values()))
        return [_run(work, side, seed, training) for side, training in trainings.items()]


def _run(work: str, side: str, seed: int, training: Training) -> Run:
    result = training.result()
    if result.returncode:
        raise CannotMeasure(f"{work} ({side}) failed: {(result.stderr.strip().splitlines() or ['no output'])[-1]}")
    report = json.loads(result.stdout.strip().splitlines()[-1])
    seconds = active_seconds(report["start"], report["end"], training.pauses)
    frames = report["frames"]
    return {"work": work, "side": side, "round": seed, "frames": frames, "seconds": seconds, "fps": frames / seconds}


def medians(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """The median speed of both sides of each workload, and how many times as fast the default is."""
    table = {}
    for work in dict.fromkeys(run["work"] for run in runs):
        fps = {side: median(run["fps"] for run in runs if (run["work"], run["side"]) == (work, side)) for side in SIDES}
        table[work] = {**fps, "ratio": fps["default"] / fps["torch"]}
    return table


def measure(works: Iterable[str], repeats: int, scale: float) -> dict[str, Any]:
    """All runs and their medians."""
    runs: list[Run] = []
    for work in works:
        for seed in range(repeats):
            runs += train_both(work, max(1, round(FRAMES[work] * scale)), seed)
            speeds = ", ".join(f"{run['side']} {run['fps']:,.0f} fps" for run in runs[-2:])
            print(f"{work} {seed + 1}/{repeats}: {speeds}", file=sys.stderr)
    return {"cpu": cpu_model(), "runs": runs, "medians": medians(runs)}


def markdown(table: dict[str, dict[str, float]]) -> str:
    """The medians as the table of docs/performance.md."""
    lines = ["| workload | default, fps | `RLDSL_PRODUCTS=torch`, fps | ratio |", "|---|---:|---:|---:|"]
    for work, row in table.items():
        lines.append(f"| {work} | {row['default']:,.0f} | {row['torch']:,.0f} | {row['ratio']:.2f} |")
    return "\n".join(lines)


def main() -> int:
    """0 when everything was measured, 2 otherwise."""
    parser = argparse.ArgumentParser(prog="benchmarks.ablation", description=__doc__)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=WORKS)
    parser.add_argument("--repeats", type=int, default=3, help="rounds to take the median of (default: 3)")
    parser.add_argument("--frames-scale", type=float, default=0.5, help="a factor on the length of every training")
    parser.add_argument("--json", type=Path, default=ROOT / "results" / "ablation.json", help="the file to write")
    parser.add_argument("--busy-ok", action="store_true", help="measure although the machine is busy")
    args = parser.parse_args()
    try:
        if not args.busy_ok:
            refuse_if_busy(os.getloadavg()[0])
        result = measure(args.works, args.repeats, args.frames_scale)
    except CannotMeasure as reason:
        print(reason, file=sys.stderr)
        return 2
    args.json.write_text(json.dumps(result, indent=2) + "\n")
    print(markdown(result["medians"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
