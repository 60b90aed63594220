"""The command `watch`: its imports, its help, its error without a terminal."""

from __future__ import annotations

import subprocess
import sys

from tests.project import Project

HEAVY = ("torch", "gymnasium", "jax", "tensorboard", "scipy", "mujoco", "aiohttp", "numpy")


def test_the_app_imports_nothing_heavy() -> None:
    code = "import sys, rldsl.monitor.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "rldsl.monitor.app" in ran.stdout.split()
    assert not set(HEAVY) & set(ran.stdout.split())


def test_the_help_text(project: Project) -> None:
    text = project.rldsl("watch", "--help").stdout
    for words in ("? lists them all", "status:failed env:Hopper algo:ppo", "--serve", "ssh -L", "--light", "RUNS"):
        assert words in text


def test_without_a_terminal_the_error_names_alternatives(project: Project) -> None:
    ran = project.rldsl("watch")
    assert ran.returncode == 2
    assert ran.stderr.strip() == (
        "error: watch needs a terminal; `rldsl list` prints the same facts, `watch --serve` makes a page"
    )
