"""Planning is light: no deep-learning library is imported, and a plan's time and memory do not depend on its size."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.project import CARTPOLE, Project

HEAVY = ("torch", "gymnasium", "jax", "tensorboard", "scipy", "mujoco")
MOST_MODULES = 650
"""`plan` imports about 390 modules, pydantic, typer and rich included. numpy alone has 150, torch more than 1,000."""
GRID = """
    import atexit, resource
    from pathlib import Path

    from rldsl import PPO, Classic, experiment, grid, main

    def write_cost():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        status = Path("/proc/self/status").read_text()
        Path("cost").write_text(f"cpu: {{usage.ru_utime + usage.ru_stime}}\\n{{status}}")

    atexit.register(write_cost)
    base = experiment("big").env(Classic("CartPole-v1")).agent(PPO()).frames(1e6)
    many = grid(*(index / {size} for index in range({size})))
    main(base.search(gamma=many, lam=many, epochs=grid(*range(1, 11))))
"""


@dataclass(frozen=True)
class Cost:
    """The output of a command, its CPU seconds and its peak memory. CPU seconds do not count waiting for a core."""

    output: str
    cpu_seconds: float
    megabytes: float


def plan_grid(project: Project, size: int) -> Cost:
    """Plans a grid of `10 * size**2` trials."""
    project.write(GRID.format(size=size))
    ran = project.python("exp.py", "plan")
    assert ran.returncode == 0, ran.stderr
    cost = (project.root / "cost").read_text()
    cpu, kilobytes = re.search(r"cpu: (\S+)", cost), re.search(r"VmHWM:\s*(\d+) kB", cost)
    assert cpu and kilobytes
    return Cost(ran.stdout, float(cpu[1]), int(kilobytes[1]) / 1024)


@pytest.mark.parametrize("command", ["plan", "status", "--help"])
def test_commands_that_do_not_train_import_nothing_heavy(project: Project, command: str) -> None:
    ran = project.python("-X", "importtime", CARTPOLE, command)
    assert ran.returncode == 0
    modules = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "rldsl" in modules
    assert not {module.partition(".")[0] for module in modules} & set(HEAVY)
    assert len(modules) < MOST_MODULES


def test_a_hundred_thousand_trials_are_planned_in_seconds_and_500_mb(project: Project) -> None:
    cost = plan_grid(project, size=100)
    assert "100,000 trials, 100,000 sessions: 100,000 new" in cost.output
    assert cost.megabytes < 500
    assert cost.cpu_seconds < 60, "about 6 on a slow core; validating every trial by itself takes several minutes"


def test_ten_million_trials_are_counted_without_expanding_them(project: Project) -> None:
    cost = plan_grid(project, size=1000)
    lines = cost.output.splitlines()
    assert lines[0] == "big/ppo-grid  10,000,000 trials of a grid x 1 seed x 1M frames"
    assert len(lines) == 44
    assert lines[-1].startswith("10,000,000 trials, 10,000,000 sessions")
    assert cost.megabytes < 500
    assert cost.cpu_seconds < 20, "about 1; expanding all trials takes minutes"
