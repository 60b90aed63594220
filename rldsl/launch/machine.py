"""Cores, memory and GPUs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess


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
    return [str(index) for index, _ in enumerate(_listed())]


def _listed() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        answer = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line for line in answer.stdout.splitlines() if line.startswith("GPU ")]
