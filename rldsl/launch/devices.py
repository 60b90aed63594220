"""Which sessions of a launcher train on a GPU, and what is wrong with the devices that they ask for."""

from __future__ import annotations

from collections.abc import Iterable

from rldsl.launch import machine
from rldsl.spec.device import CPU, gpu_number, uses_gpu
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Trial
from rldsl.spec.launcher import Launcher, Local


def has_gpus(launcher: Launcher) -> bool:
    """Whether jobs of a launcher have a GPU by themselves; with `device="cuda"`, a queue is asked for one anyway."""
    return bool(machine.gpus()) if isinstance(launcher, Local) else launcher.offers_gpus


def on_gpu(trial: Trial, launcher: Launcher) -> bool:
    """Whether sessions of a trial train on a GPU with this launcher."""
    return uses_gpu(trial, has_gpus(launcher))


def device_problem(trial: Trial, launcher: Launcher) -> str | None:
    """Why sessions of a trial cannot train on their device with this launcher; None if they can."""
    device = trial.compute.device
    number = gpu_number(device)
    if not isinstance(launcher, Local):
        if number:
            return f"compute.device is {device}, but {launcher.kind} chooses the GPU of a job: write cuda"
        if device != CPU and getattr(launcher, "gpus", None) == 0:
            kind = type(launcher).__name__
            return f"compute.device is {device}, but {kind}.gpus is 0" if device.startswith("cuda") else None
        return None
    if not uses_gpu(trial, available=False):
        return None
    gpus = machine.gpus()
    if not gpus:
        return f"compute.device is {device}, but this machine has no GPU: use auto or cpu"
    if number is not None and number >= len(gpus):
        have = "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"
        return f"compute.device is {device}, but this machine has {have}: the last one is cuda:{len(gpus) - 1}"
    return None


def idle_gpu_warning(trial: Trial, launcher: Launcher, asked: int) -> str | None:
    """A warning about the GPUs that a job is `asked` to have while its sessions train on the CPU; None: all is well."""
    if not asked or on_gpu(trial, launcher):
        return None
    why = "compute.device is cpu" if trial.compute.device == CPU else "compute.device=auto leaves small networks there"
    return f"its sessions train on the CPU ({why}) and leave the GPUs idle: use compute.device=cuda, or no GPUs"


def device_warnings(trials: Iterable[Trial], launcher: Launcher) -> list[str]:
    """What is wrong with the devices of these trials, each once."""
    asked = launcher.asked_gpus
    found = (device_problem(trial, launcher) or idle_gpu_warning(trial, launcher, asked) for trial in trials)
    return list(dict.fromkeys(filter(None, found)))


def refuse_devices(trials: Iterable[Trial], launcher: Launcher) -> None:
    """Raises `SpecError` if a trial asks for a device that its sessions cannot get."""
    for trial in trials:
        if problem := device_problem(trial, launcher):
            raise SpecError(problem)
