"""Cores, memory and GPUs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gb() -> float:
    """Total memory."""
    import psutil  # type: ignore[import-untyped]  # it has no stubs

    return float(psutil.virtual_memory().total) / 1e9


def gpus() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name.strip() for name in visible.split(",") if name.strip() and name.strip() != "-1"]
    return [str(index) for index in range(_installed())]


@cache
def _installed() -> int:
    """The GPUs of this machine, by NVIDIA's driver."""
    if shutil.which("nvidia-smi") is None:
        return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    try:
        answer = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in answer.stdout.splitlines())
