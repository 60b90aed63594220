"""Usage of this machine: CPU cores, memory, GPUs, the disk of the run directory, and the processes of sessions."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GPU_FIELDS = "name,utilization.gpu,memory.used,memory.total,power.draw,power.limit,temperature.gpu"
GPU_QUERY = ["nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader,nounits"]
GPU_PROCESSES = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
TIMEOUT = 5.0
HISTORY = 360
"""Measurements that are kept; one every five seconds makes half an hour."""


@dataclass(frozen=True)
class Gpu:
    """Usage of one GPU; memory in bytes, power in watts, temperature in degrees Celsius; None if it is not known."""

    name: str
    utilization: float
    used: int
    total: int
    power: float | None = None
    power_limit: float | None = None
    temperature: float | None = None


@dataclass(frozen=True)
class ProcessUsage:
    """Usage of a process and its children; CPU in cores, memory in bytes."""

    cpu: float
    memory: int
    gpu_memory: int | None = None


@dataclass(frozen=True)
class Usage:
    """Utilization from 0 to 1; sizes as (used, total) in bytes."""

    cores: tuple[float, ...] = ()
    load: tuple[float, ...] = ()
    memory: tuple[int, int] = (0, 0)
    swap: tuple[int, int] = (0, 0)
    disk: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = field(default=())
    temperature: float | None = None
    """Of the CPU, if the machine says."""


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
        gpus=tuple(parse_gpus(_nvidia_smi(GPU_QUERY))),
        temperature=_temperature(psutil),
    )


def _disk(runs: Path) -> tuple[int, int] | None:
    try:
        usage = shutil.disk_usage(runs)
    except OSError:
        return None
    return usage.total - usage.free, usage.total


def _temperature(psutil: Any) -> float | None:
    """The hottest sensor of the CPU."""
    with suppress(AttributeError, OSError, RuntimeError, ValueError):
        sensors = psutil.sensors_temperatures()
        found = [one.current for name in ("coretemp", "k10temp", "cpu_thermal") for one in sensors.get(name, ())]
        return max(found, default=None)
    return None


def _nvidia_smi(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def parse_gpus(text: str) -> list[Gpu]:
    """Parses the output of `nvidia-smi`; values that it does not know, `[N/A]`, count as 0 or as unknown."""
    gpus = []
    for line in text.splitlines():
        name, *cells = (cell.strip() for cell in line.split(","))
        if len(cells) in (3, 6):
            percent, used, total = (_number(cell) or 0.0 for cell in cells[:3])
            more = [_number(cell) for cell in cells[3:]]
            gpus.append(Gpu(name, percent / 100, int(used * 2**20), int(total * 2**20), *more))
    return gpus


def parse_gpu_processes(text: str) -> dict[int, int]:
    """Bytes of GPU memory by pid, over all GPUs."""
    found: dict[int, int] = {}
    for line in text.splitlines():
        pid, _, memory = line.partition(",")
        if pid.strip().isdigit():
            found[int(pid)] = found.get(int(pid), 0) + int((_number(memory.strip()) or 0.0) * 2**20)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class ProcessMeter:
    """Measures processes; their CPU usage is the mean since the last call."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def read(self, pids: Iterable[int]) -> dict[int, ProcessUsage]:
        """The usage of those of these processes that are alive."""
        wanted = set(pids)
        on_gpu = parse_gpu_processes(_nvidia_smi(GPU_PROCESSES)) if wanted else {}
        return {pid: usage for pid in wanted if (usage := self._read(pid, on_gpu)) is not None}

    def _read(self, pid: int, on_gpu: Mapping[int, int]) -> ProcessUsage | None:
        import psutil

        try:
            tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            return None
        cpu, memory, gpu = 0.0, 0, 0
        for process in tree:
            process = self._known.setdefault(process.pid, process)
            with suppress(psutil.Error):
                cpu += process.cpu_percent(interval=None) / 100
                memory += process.memory_info().rss
                gpu += on_gpu.get(process.pid, 0)
        return ProcessUsage(cpu, memory, gpu if on_gpu else None)


class MachineHistory:
    """Measurements since the monitor was started, also while the screen Machine is hidden."""

    def __init__(self) -> None:
        self.latest = Usage()
        self.processes: dict[int, ProcessUsage] = {}
        self.holders: dict[str, int] = {}
        """The pid of the process that trains a session here, by the path of the session."""
        self.cpu: deque[float] = deque(maxlen=HISTORY)
        self.memory: deque[float] = deque(maxlen=HISTORY)
        self.gpu: deque[float] = deque(maxlen=HISTORY)
        self._meter = ProcessMeter()
        self._lock = threading.Lock()

    def sample(self, read: Callable[[], Usage], holders: Mapping[str, int]) -> None:
        """Takes one measurement, in a thread."""
        with self._lock:
            usage, processes = read(), self._meter.read(holders.values())
            self.latest, self.processes, self.holders = usage, processes, dict(holders)
            if usage.cores:
                self.cpu.append(sum(usage.cores) / len(usage.cores))
            if usage.memory[1]:
                self.memory.append(usage.memory[0] / usage.memory[1])
            if usage.gpus:
                self.gpu.append(sum(gpu.utilization for gpu in usage.gpus) / len(usage.gpus))
