"""Filling jobs: how many processes a job of a queue runs, of one pack each, and what the job asks for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from rldsl.launch.devices import has_gpus
from rldsl.launch.jobs import Job, Resources, joined
from rldsl.launch.local import processes
from rldsl.plan.existing import PlannedSession
from rldsl.plan.packs import make_packs
from rldsl.spec.device import uses_gpu
from rldsl.spec.experiment import Trial
from rldsl.spec.launcher import Launcher, Local, QueueLauncher

T = TypeVar("T")


class JobShape(NamedTuple):
    """A job as `plan` shows it: so many processes that need these resources each, in a job that asks for those."""

    processes: int
    each: Resources
    asked: Resources


def packs_of(sessions: Sequence[PlannedSession], launcher: Launcher) -> list[list[PlannedSession]]:
    """Packs of sessions: at least as many as processes at the same time on this machine or in a job, if possible."""
    gpu = has_gpus(launcher)
    trials = list({planned.row.id: planned.row.trial for planned in sessions}.values())
    return make_packs(sessions, _parallel(trials, launcher, gpu), launcher.members, gpu)


def _parallel(trials: Sequence[Trial], launcher: Launcher, gpu: bool) -> int:
    needs = [Resources.of(trial, uses_gpu(trial, gpu)) for trial in trials]
    if isinstance(launcher, Local):
        return processes(launcher, needs)
    return max((processes_per_job(launcher, each) for each in needs), default=1)


def processes_per_job(launcher: Launcher, each: Resources) -> int:
    """How many processes a job has room for, if each needs these resources."""
    if not isinstance(launcher, QueueLauncher):
        return 1
    if launcher.processes is not None:
        return launcher.processes
    room = [(launcher.cpus or each.cpus) // each.cpus] if launcher.cpus or not each.gpus else []
    if each.gpus:
        room.append((launcher.gpus or 1) * launcher.per_gpu)
    memory = getattr(launcher, "memory_gb", None)
    if memory and each.memory_gb:
        room.append(int(memory / each.memory_gb))
    return max(1, min(room))


def job_resources(launcher: Launcher, each: Sequence[Resources]) -> Resources:
    """What a job of these processes asks for; the launcher's own numbers count first."""
    memory = math.ceil(sum(one.memory_gb for one in each)) if any(one.large for one in each) else 0
    if not isinstance(launcher, QueueLauncher):
        return Resources(sum(one.cpus for one in each), max(one.gpus for one in each), memory)
    gpus = math.ceil(sum(one.gpus for one in each) / launcher.per_gpu)
    return Resources(
        launcher.cpus or sum(one.cpus for one in each),
        gpus if launcher.gpus is None else launcher.gpus,
        getattr(launcher, "memory_gb", None) or memory,
    )


def fill_jobs(jobs: Sequence[Job], launcher: Launcher) -> list[Job]:
    """Joins jobs of one process each into jobs that fill what the launcher gives them."""
    filled = []
    for group in _chunks(jobs, launcher, lambda job: job.resources, lambda job: job.until):
        asked = job_resources(launcher, [job.resources for job in group])
        filled.append(joined(group, asked) if len(group) > 1 else replace(group[0], resources=asked))
    return _with_equal_memory(filled)


def _with_equal_memory(jobs: Sequence[Job]) -> list[Job]:
    """Jobs that differ only in their memory ask for the most of them, so that they can be submitted together."""
    most: dict[tuple[int, int], float] = defaultdict(float)
    for job in jobs:
        most[job.resources[:2]] = max(most[job.resources[:2]], job.resources.memory_gb)
    return [replace(job, resources=job.resources._replace(memory_gb=most[job.resources[:2]])) for job in jobs]


def job_shapes(packs: Sequence[Sequence[PlannedSession]], launcher: Launcher) -> Counter[JobShape]:
    """The jobs that packs become, by their shape."""
    gpu = has_gpus(launcher)

    def need(pack: Sequence[PlannedSession]) -> Resources:
        trial = pack[0].row.trial
        return Resources.of(trial, uses_gpu(trial, gpu), len(pack))

    shapes: Counter[JobShape] = Counter()
    for group in _chunks(packs, launcher, need):
        needs = [need(pack) for pack in group]
        largest = needs[0]._replace(memory_gb=max(one.memory_gb for one in needs))
        shapes[JobShape(len(group), largest, job_resources(launcher, needs))] += 1
    return shapes


def _chunks(
    items: Iterable[T],
    launcher: Launcher,
    need: Callable[[T], Resources],
    key: Callable[[T], object] = lambda _: None,
) -> Iterator[list[T]]:
    """Items of the same key that need the same cores and GPUs, as many together as a job has room for."""
    groups: dict[object, list[T]] = defaultdict(list)
    for item in items:
        groups[need(item)[:2], key(item)].append(item)
    for group in groups.values():
        largest = max(need(item).memory_gb for item in group)
        size = processes_per_job(launcher, need(group[0])._replace(memory_gb=largest))
        yield from (group[start : start + size] for start in range(0, len(group), size))


def fillings(shapes: Counter[JobShape], launcher: Launcher) -> list[str]:
    """Lines for `plan`: the processes of jobs, and warnings about what would be idle or missing.

    Of jobs of one process that are as they should be there is nothing to say.
    """
    if not isinstance(launcher, QueueLauncher):
        return []
    lines: list[str] = []
    for shape, jobs in shapes.items():
        which = "each job" if len(shapes) == 1 else f"{jobs} job{'' if jobs == 1 else 's'}"
        runs = "runs" if which == "each job" or jobs == 1 else "run"
        warnings = [f"warning: {warning}" for warning in _warnings(shape, launcher.per_gpu)]
        if shape.processes > 1 or warnings or len(shapes) > 1:
            lines += [f"{which} {runs} {_processes(shape, launcher.per_gpu)}", *warnings]
    return lines


def _processes(shape: JobShape, per_gpu: int) -> str:
    count, each, _ = shape
    threads = f"{each.cpus} thread{'' if each.cpus == 1 else 's'}"
    gpu = ["1 GPU" if per_gpu == 1 else f"a GPU for up to {per_gpu} of them"] if each.gpus else []
    memory = [f"about {each.memory_gb:.0f} GB"] if each.large else []
    apiece = " each" if count > 1 else ""
    return f"{count} process{'' if count == 1 else 'es'} with {', '.join([threads, *gpu, *memory])}{apiece}"


def _warnings(shape: JobShape, per_gpu: int) -> Iterator[str]:
    """What a job has too much of, and what it has too little of."""
    count, each, asked = shape
    used = count * each.cpus
    if used < asked.cpus:
        yield f"{asked.cpus - used} of {asked.cpus} cores of a job stay idle: more processes or threads, or fewer cpus"
    if used > asked.cpus:
        yield f"{used} threads share the {asked.cpus} cores of a job: fewer processes, or more cpus"
    gpus = math.ceil(count * each.gpus / per_gpu)
    if each.gpus and gpus < asked.gpus:
        yield f"{asked.gpus - gpus} of {asked.gpus} GPUs of a job stay idle: more processes, or fewer gpus"
    if each.gpus and gpus > asked.gpus:
        share = math.ceil(count / max(1, asked.gpus))
        yield f"{count} processes share {asked.gpus} GPU{'' if asked.gpus == 1 else 's'}: say so with per_gpu={share}"
    need = count * each.memory_gb
    if asked.memory_gb and each.large and need > asked.memory_gb:
        yield f"a job needs about {need:.0f} GB of memory and asks for {asked.memory_gb:.0f} GB: more memory_gb"
