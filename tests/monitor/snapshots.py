"""Text snapshots of every screen, of fixed sessions: `python -m tests.monitor.snapshots` writes them again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from rldsl import A2C, PPO, uniform
from rldsl.monitor.app import WatchApp
from rldsl.monitor.machine import Gpu, ProcessUsage, Usage
from rldsl.monitor.queue import Queue, QueueRow
from rldsl.store.session_dir import SessionDir
from tests.monitor.drive import watching
from tests.monitor.sample_sessions import (
    append_events,
    cartpole,
    finished_trials,
    make,
    make_done,
    make_failed,
    make_search,
    make_stopped,
    running,
    sessions_of,
)

FOLDER = Path(__file__).parent / "snapshots"
EPOCH = 1_790_000_000.0
"""The time of all events of the sessions."""
PROVENANCE = {
    "command": ["python", "cartpole.py", "--only", "clips"],
    "cwd": "experiments",
    "code": {"sha": "0123456789abcdef", "dirty": False, "rldsl": "0.1.0"},
    "python": "3.11.7",
    "packages": {"torch": "2.13.0", "numpy": "2.4.6"},
    "host": "laptop",
    "hardware": {"cpu": "a processor", "cores": 8},
}
GPU = Gpu("L4", 0.5, 2**33, 2**34)
USAGE = Usage((0.25, 0.97), (1.5, 1.2, 0.9), (6 * 2**30, 16 * 2**30), (0, 0), (2**40, 2**41), (GPU,))
JOBS = [
    QueueRow("slurm", "4711", "running", "on node1", "cartpole", "1:02"),
    QueueRow("slurm", "4712", "pending", "Priority", "hopper", "0:00"),
]
SMALL, MEDIUM, LARGE = (80, 24), (120, 40), (200, 60)
SCENES = {
    "runs": ("j", "j", "j", "j", "space"),
    "filter": ("slash", *"status:failed,running"),
    "curves": ("j", "j", "j", "2"),
    "grid": ("j", "j", "j", "2", "v", "e", "i"),
    "columns": ("C",),
    "events": ("E",),
    "log": ("j", "3", "slash", *"broke", "enter"),
    "detail": ("j", "j", "j", "j", "j", "enter"),
    "search": ("5",),
    "queue": ("6",),
    "machine": ("7",),
    "help": ("question_mark",),
    "confirm": ("j", "r"),
    "diff": ("j", "j", "j", "j", "j", "space", "j", "j", "space", "d"),
}

WIDER = ("runs", "curves", "grid", "log", "detail", "search", "machine", "help")
SIZES = {SMALL: tuple(SCENES), MEDIUM: WIDER, LARGE: ("runs", "curves", "grid", "detail", "machine")}
"""The scenes at each size: at the larger ones only those with a different layout."""


@contextmanager
def fixed_sessions(runs: Path) -> Iterator[None]:
    """Sessions with fixed numbers; inside the block the time is constant and the machine has two cores."""
    fixed_time, two_cores = patch.object(time, "time", lambda: EPOCH), patch.object(os, "cpu_count", lambda: 2)
    with fixed_time, two_cores, patch.object(os, "fsync", lambda fd: None):
        low, high = (cartpole().agent(PPO(clip=clip)).named("cartpole/clips") for clip in (0.1, 0.3))
        clips = zip([*sessions_of(low), *sessions_of(high)], (300, 340, 460, 480), strict=True)
        made = [make_done(runs, one, best) for one, best in clips]
        search = cartpole().search(gamma=uniform(0.9, 0.99)).random(trials=3)
        make_search(runs, search, finished_trials(search, (105.0, 125.0, 145.0), gamma=(0.95, 0.96, 0.97)))
        for number, one in enumerate(sessions_of(search)):
            made.append(make_done(runs, one, best=100.0 + 10 * number))
            _set(made[-1], gamma=0.95 + number // 2 / 100)
        a2c, ppo = sessions_of(cartpole().agent(A2C()).named("cartpole/a2c")), sessions_of(cartpole())
        made.append(make_failed(runs, a2c[0], "diverged: its parameters are not finite any more"))
        made[-1].log.write_text("update 1\nupdate 2\nTraceback: it broke\n")
        made += [make_stopped(runs, ppo[1]), make(runs, a2c[1])]
        append_events(made[-1], ("submitted", {"place": "slurm", "job_id": "4712"}))
        with running(runs, ppo[0], frame=60_000, value=210.0) as alive:
            _age([*made, alive])
            yield


def _set(directory: SessionDir, **settings: float) -> None:
    """Reduces the spec to a few settings, so that new fields of agents do not change the snapshots."""
    record = directory.read_session()
    agent = {name: record["trial"]["agent"].get(name) for name in ("kind", "gamma", "clip", "rollout")}
    trial = {"agent": agent | settings, "env": {"kind": "classic", "num_envs": 8}, "budget": {"frames": 100_000}}
    directory.session.write_text(json.dumps({**record, "trial": trial}))


def _age(sessions: list[SessionDir]) -> None:
    for number, one in enumerate(sessions):
        (one.path / "provenance.json").write_text(json.dumps(PROVENANCE))
        _set(one)
        if one.metrics.exists():
            os.utime(one.metrics, (EPOCH + number, EPOCH + number))


async def take_snapshots(runs: Path, size: tuple[int, int]) -> dict[str, str]:
    """The text of every scene of a size."""
    texts = {}
    for name in SIZES[size]:
        queue = Queue({"SLURM": lambda: JOBS})
        async with watching(runs, size, now=lambda: EPOCH + 600, queue=queue) as driver:
            _fix_machine(driver.app)
            driver.app.session_tree.folded = {}
            await driver.press(*SCENES[name])
            await driver.settle()
            texts[name] = _without_machine(driver.text, runs)
    return texts


def _fix_machine(app: WatchApp) -> None:
    """Fixed numbers instead of measurements."""
    app.read_usage = lambda runs: USAGE
    sample = app.machine.sample
    app.machine._meter.read = lambda pids: dict.fromkeys(pids, ProcessUsage(1.5, 2**28))
    app.machine.sample = lambda read, holders: sample(read, dict.fromkeys(holders, 4242))


def _without_machine(text: str, runs: Path) -> str:
    """Replaces what differs from machine to machine."""
    text = text.replace(str(runs), "runs").replace(os.uname().nodename, "laptop")
    text = re.sub(r"\b[0-9a-f]{12}\b", "0123456789ab", text)
    return re.sub(rf"pid={os.getpid()}\b", "pid=1", text) + "\n"


def take(size: tuple[int, int]) -> dict[str, str]:
    """All snapshots of one size."""
    with tempfile.TemporaryDirectory(prefix="r") as directory, in_utc(), fixed_sessions(Path(directory)):
        return asyncio.run(take_snapshots(Path(directory), size))


@contextmanager
def in_utc() -> Iterator[None]:
    """Sets the time zone, in which events are shown."""
    with patch.dict(os.environ, TZ="UTC"):
        time.tzset()
        yield
    time.tzset()


def path_of(name: str, size: tuple[int, int]) -> Path:
    return FOLDER / f"{name}-{size[0]}x{size[1]}.txt"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in SIZES:
        for scene, shown in take(each).items():
            path_of(scene, each).write_text(shown)
            sys.stdout.write(f"{path_of(scene, each).name}\n")
