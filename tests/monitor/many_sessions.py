"""Measures the event loop with 20,000 sessions: `python -m tests.monitor.many_sessions [SESSIONS]`.

The sessions exist in memory only: what is measured is how long a change keeps the screen from reacting to keys.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rldsl.monitor.filter import parse
from rldsl.monitor.session_index import MAX_AT_ONCE, Changes
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.varied_settings import VariedSettings
from rldsl.store.session_state import SessionState
from tests.monitor.drive import Driver, watching


def make_sessions(count: int, varied: dict[str, VariedSettings]) -> list[SessionSnapshot]:
    """Sessions of experiments with 25 trials and 4 seeds each."""
    made = []
    for number in range(count):
        experiment, trial, seed = f"load-{number // 100:04d}", f"{number // 4:012x}", number % 4
        spec = {
            "agent": {"kind": "ppo", "gamma": round(0.9 + number // 4 % 25 / 1000, 4)},
            "env": {"id": "CartPole-v1"},
        }
        varied.setdefault(experiment, VariedSettings()).add(trial, spec)
        state = "running" if number % 400 == 0 else "done"
        status = SessionState(
            experiment, f"{trial}-s{seed}", seed, 100_000, 450.0, "", state, frame=90_000, fps=1000.0,
            episode_return=random.random() * 500, status="started" if state == "running" else "done",
        )  # fmt: skip
        path = f"CartPole-v1/ppo-{trial}/seed-{seed}"
        made.append(
            SessionSnapshot(
                path, status, "CartPole-v1", "ppo", trial, "local", None, 1.0 * number, None, state, fps=1000.0
            )
        )
    return made


def slowest(work: Callable[[], object], repeats: int = 5) -> float:
    """Milliseconds of CPU time of the slowest of a few calls: other processes may have the CPU in between."""
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return max(times) * 1000


async def measure(driver: Driver, count: int) -> dict[str, float]:
    """Milliseconds on the event loop of each kind of refresh."""
    app = driver.app
    sessions = make_sessions(count, app.index.varied)
    parts = Changes(sessions, []).parts()
    found = {"all sessions at once, each part": slowest(lambda: app.apply(next(parts)), -(-count // MAX_AT_ONCE))}
    assert len(app.sessions) == count
    await driver.settle()
    running = [one for one in sessions if one.live]

    def change() -> None:
        now = time.time()
        app.apply(Changes([replace(one, changed=now + random.random()) for one in running], []))

    def filtered(text: str) -> Callable[[], None]:
        def work() -> None:
            app.session_tree.filter = parse(text)
            app.refresh_screen()
            app.session_tree.filter = parse("")

        return work

    found["50 running sessions changed"] = slowest(change)
    app.session_tree.fold_all(False)
    app.refresh_screen()
    found["the same, all unfolded"] = slowest(change)
    app.session_tree.order = "return"
    app.refresh_screen()
    found["the same, by return"] = slowest(change)
    app.session_tree.filter = parse("cartpole")
    app.refresh_screen()
    found["the same, filtered by a word"] = slowest(change)
    app.session_tree.fold_all(True)
    app.refresh_screen()
    found["a key of a filter is typed"] = slowest(filtered("return>400 gamma>=.91"))
    found["a tick"] = slowest(lambda: app.screen.tick())  # type: ignore[attr-defined]
    await driver.settle()
    return found


def run(count: int) -> dict[str, float]:
    """Starts the app and measures it."""

    async def main(runs: Path) -> dict[str, float]:
        async with watching(runs, (160, 50)) as driver:
            return await measure(driver, count)

    gc.collect()
    gc.freeze()  # what else this process holds, other tests for example, does not count
    try:
        with tempfile.TemporaryDirectory() as directory:
            return asyncio.run(main(Path(directory)))
    finally:
        gc.unfreeze()


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print(f"{total:,} sessions")
    for name, milliseconds in run(total).items():
        print(f"{name:<32} {milliseconds:7.1f} ms")
