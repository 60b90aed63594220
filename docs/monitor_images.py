"""Creates the images of the monitor: CartPole sessions, some done, one failed, some running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rldsl.monitor.app import WatchApp

IMAGES = Path(__file__).resolve().parent / "images"
EXPERIMENT = """
from rldsl import A2C, PPO, Classic, Linear, Random, experiment, grid, log_uniform, main, uniform

cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=8)).seeds(3).target(450).log_every(500)
agent = PPO(rollout=128, minibatch=256, lr=Linear(1e-3, 0))

baseline = cartpole.agent(Random()).frames(3e4)
clips = cartpole.agent(agent).frames(6e4).search(clip=grid(0.1, 0.2, 0.3)).named("cartpole/clips")
diverging = cartpole.agent(A2C(lr=1e38, max_grad_norm=None)).frames(3e4).seeds(1)
rates = cartpole.agent(agent).frames(3e4).seeds(2).search(gamma=uniform(0.9, 0.999), lr=log_uniform(1e-4, 1e-2))
rates = rates.asha(trials=9, grace=3e3, seeds=(1, 2)).named("cartpole/rates")
long = cartpole.agent(agent).frames(3e5).seeds(2).named("cartpole/ppo-long")

if __name__ == "__main__":
    main(baseline, clips, diverging, rates, long)
"""
SCENES = {
    "monitor": ((118, 32), False, ()),
    "monitor-wide": ((164, 34), False, ("@cartpole/clips",)),
    "monitor-curves": ((118, 30), False, ("@cartpole/clips", "2")),
    "monitor-grid": ((118, 36), False, ("@cartpole/clips", "2", "v", "e", "i")),
    "monitor-search": ((100, 14), True, ("5",)),
    "monitor-80x24": ((80, 24), True, ("slash", *"-status:done", "enter")),
}
"""Size, light theme or not, and the keys to press; `@name` moves the cursor to a line."""


def command(*words: str) -> list[str]:
    return [sys.executable, "cartpole.py", *words]


def train() -> None:
    """Trains sessions that finish and one that fails."""
    selection = ("--only", "random", "--only", "cartpole/clips", "--only", "a2c")
    subprocess.run(command("train", *selection), stdout=subprocess.DEVNULL, check=False)
    subprocess.run(command("search"), stdout=subprocess.DEVNULL, check=True)


def _far_enough(status: Any) -> bool:
    return status.state == "running" and status.frame > 1e5


async def take(name: str) -> str:
    """Takes one image."""
    size, light, keys = SCENES[name]
    app = WatchApp(Path("runs"), light=light)
    async with app.run_test(size=size) as pilot:
        while not any(_far_enough(session.status) for session in app.sessions.values()):
            await pilot.pause(0.5)
        for key in keys:
            if key.startswith("@"):
                table = app.screen.table  # type: ignore[attr-defined]
                table.cursor = [row.label for row in table.rows].index(key[1:])
            else:
                await pilot.press(key)
            await pilot.pause()
        await pilot.pause(1.0)
        return app.export_screenshot(title="rldsl watch")


def make() -> None:
    """Takes all images, with runs in a temporary directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        Path("cartpole.py").write_text(EXPERIMENT)
        train()
        running = subprocess.Popen(command("train", "--only", "cartpole/ppo-long"), stdout=subprocess.DEVNULL)
        try:
            for name in SCENES:
                svg = asyncio.run(take(name))
                svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no fonts from other hosts
                (IMAGES / f"{name}.svg").write_text(svg)
        finally:
            with contextlib.suppress(ProcessLookupError):
                running.send_signal(signal.SIGTERM)
            running.wait()
            os.chdir(before)


if __name__ == "__main__":
    make()
