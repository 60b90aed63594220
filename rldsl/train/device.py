"""The device of a pack, resolved where it trains, and the environment variables that torch and JAX read it from."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from rldsl.spec.device import AUTO, CPU, CUDA, gpu_number, uses_gpu
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Trial

VISIBLE = "CUDA_VISIBLE_DEVICES"
PLATFORMS = "JAX_PLATFORMS"
JAX_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
}
"""Where compilers keep code for GPUs: on a cluster, the nodes share the cache directory of the user."""


def prepare_process(trial: Trial) -> None:
    """Sets the environment of a worker process, before torch or JAX look for a GPU.

    Sessions that train on the CPU see no GPU; others share a cache of compiled kernels.
    """
    if not uses_gpu(trial, available=True):
        os.environ[VISIBLE] = ""
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rldsl"
    for name, kind in CACHES.items():
        os.environ.setdefault(name, str(folder / kind))


def resolve_device(trial: Trial) -> str:
    """`cpu`, `cuda` or `cuda:1`: the device that a trial trains on in this process. JAX is told to use the same one.

    Raises `SpecError` if the trial asks for a GPU that this process does not have.
    """
    device = _device(trial)
    if _needs_jax(trial):
        _use_in_jax("cuda,cpu" if device.startswith(CUDA) else CPU)
    return device


def _device(trial: Trial) -> str:
    wanted = trial.compute.device
    if not uses_gpu(trial, available=True):
        return CPU
    if problem := cuda_problem(trial):
        if wanted == AUTO:
            if gpus_here():
                print(f"rldsl: there is a GPU, but {problem}; training on the CPU", file=sys.stderr)  # noqa: T201
            return CPU
        raise SpecError(f"compute.device is {wanted}, but {problem}")
    return CUDA if wanted == AUTO else _visible(wanted)


def cuda_problem(trial: Trial) -> str | None:
    """Why a trial cannot train on a GPU in this process; None if it can."""
    import torch

    if not torch.cuda.is_available():
        if torch.version.cuda is None:
            return "the installed torch has no CUDA: install one that has (https://pytorch.org)"
        visible = os.environ.get(VISIBLE)
        where = "this machine" if visible is None else f"{VISIBLE}={visible!r}"
        return f"torch finds no GPU ({where}): ask the launcher for one with gpus=1, or use compute.device=cpu"
    if _needs_jax(trial) and not any(map(find_spec, JAX_PLUGINS)):
        return "JAX, which runs this environment, has no CUDA: pip install 'jax[cuda12]'"
    return None


def gpus_here() -> bool:
    """Whether this process should see a GPU, whether or not torch can use it."""
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        return visible.strip() not in ("", "-1")
    return any(Path("/proc/driver/nvidia/gpus").glob("*"))


def _visible(wanted: str) -> str:
    """The name of a GPU in this process. A launcher that chose the GPU shows only that one, whatever its number."""
    import torch

    number, count = gpu_number(wanted), torch.cuda.device_count()
    if os.environ.get(VISIBLE) is not None and count == 1:
        return CUDA
    if number is None or number < count:
        return wanted
    have = "is only 1 GPU" if count == 1 else f"are only {count} GPUs"
    raise SpecError(f"compute.device is {wanted}, but there {have}: the last one is cuda:{count - 1}")


def _needs_jax(trial: Trial) -> bool:
    return trial.env.kind == "playground"


def _use_in_jax(platforms: str) -> None:
    """JAX reads its environment variable when it is imported; later, its configuration counts until its first use."""
    os.environ[PLATFORMS] = platforms
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_platforms", platforms)
