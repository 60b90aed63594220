"""This machine: processors, memory, graphics cards, the disk of the run directory. A question that fails is a dash."""

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
    """A graphics card; memory in bytes."""

    name: str
    share: float
    used: int
    total: int


@dataclass(frozen=True)
class Usage:
    """How busy it all is; shares from 0 to 1, sizes in bytes."""

    cores: tuple[float, ...] = ()
    load: tuple[float, ...] = ()
    memory: tuple[int, int] = (0, 0)
    swap: tuple[int, int] = (0, 0)
    disk: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = field(default=())


def read_usage(runs: Path) -> Usage:
    """As it is now; the processors since the last call."""
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return Usage(
        cores=tuple(share / 100 for share in psutil.cpu_percent(percpu=True)),
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
        answer = subprocess.run(GPU_QUERY, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return parse_gpus(answer.stdout)


def parse_gpus(text: str) -> list[Gpu]:
    """The cards in the answer of `nvidia-smi`; a figure that it does not know counts as nothing."""
    cards = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            share, used, total = (_number(cell) for cell in cells[1:])
            cards.append(Gpu(cells[0], share / 100, int(used * 2**20), int(total * 2**20)))
    return cards


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
