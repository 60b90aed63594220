"""Usage of this machine: CPU cores, memory, GPUs and the disk of the run directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

GPU_QUERY = ["nvidia-smi", "--query-gpu=name,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits"]
TIMEOUT = 5.0


@dataclass(frozen=True)
class Gpu:
    """Usage of one GPU; memory in bytes."""

    name: str
    utilization: float
    used: int
    total: int


@dataclass(frozen=True)
class Usage:
    """Utilization from 0 to 1; sizes as (used, total) in bytes."""

    cores: tuple[float, ...] = ()
    load: tuple[float, ...] = ()
    memory: tuple[int, int] = (0, 0)
    swap: tuple[int, int] = (0, 0)
    disk: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = field(default=())


def read_usage(runs: Path) -> Usage:
    """Measures the current usage; that of the cores is the mean since the last call."""
    import psutil  # type: ignore[import-untyped]

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return Usage(
        cores=tuple(percent / 100 for percent in psutil.cpu_percent(percpu=True)),
        load=os.getloadavg(),
        memory=(memory.total - memory.available, memory.total),
        swap=(swap.used, swap.total),
        disk=_disk(runs),
        gpus=tuple(_gpus()),
    )


def _disk(runs: Path) -> tuple[int, int] | None:
    try:
        usage = shutil.disk_usage(runs)
    except OSError:
        return None
    return usage.total - usage.free, usage.total


def _gpus() -> list[Gpu]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        result = subprocess.run(GPU_QUERY, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return parse_gpus(result.stdout)


def parse_gpus(text: str) -> list[Gpu]:
    """Parses the output of `nvidia-smi`; values that it does not know, `[N/A]`, count as 0."""
    gpus = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            percent, used, total = (_number(cell) for cell in cells[1:])
            gpus.append(Gpu(cells[0], percent / 100, int(used * 2**20), int(total * 2**20)))
    return gpus


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
