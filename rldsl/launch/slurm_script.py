"""The batch script of a SLURM array. Only `setup` lines reach the shell unquoted."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rldsl.launch.backend import SETUP_FAILED
from rldsl.launch.jobs import Job, Resources
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Slurm

PASSED_ENV = (
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "MODULEPATH",
)
"""Environment variables that every job gets from the submitting process; SLURM adds its own."""
COMMENT = "rldsl"
TRAP = (
    "rldsl_failed() {",
    "  rldsl_code=$?",
    f'  echo "rldsl: {SETUP_FAILED} with exit $rldsl_code: $rldsl_line"',
    "  trap - EXIT",
    "  exit $((rldsl_code ? rldsl_code : 1))",
    "}",
    "trap rldsl_failed EXIT",
)
"""Also for a line that ends the shell itself."""


def batch_script(launcher: Slurm, jobs: Sequence[Job], folder: Path, start: int) -> str:
    """The script of an array: the jobs of a submission from position `start` on."""
    path = os.pathsep.join(jobs[0].path)
    command = [sys.executable, "-m", "rldsl.launch.slurm_job", str(folder), str(start), str(warning_seconds(launcher))]
    command += ["--scratch"] if launcher.scratch else []
    cpus = launcher.cpus or jobs[0].resources.cpus
    srun = ["srun", "--unbuffered", "--export=ALL", f"--cpus-per-task={cpus}"]
    lines = [
        "#!/bin/bash -l",
        *(_option(name, value) for name, value in options(launcher, jobs, folder, start).items()),
        *_setup(launcher.setup),
        *_exports({**launcher.env, "PYTHONPATH": path}),
        shlex.join([*srun, *command]),
    ]
    return "\n".join(lines) + "\n"


def options(launcher: Slurm, jobs: Sequence[Job], folder: Path, start: int) -> dict[str, Any]:
    """The options of sbatch."""
    minutes = max(1, math.ceil(launcher.hours * 60))
    parallel = min(len(jobs), launcher.parallel or len(jobs))
    return {
        "job-name": re.sub(r"[^A-Za-z0-9._-]", "-", jobs[0].name),
        "comment": comment(folder.name, start),
        "array": f"0-{len(jobs) - 1}%{parallel}",
        "output": f"{_log_folder(folder)}/%A_%a.out",
        "open-mode": "append",
        **resource_options(launcher, jobs[0].resources),
        "ntasks": 1,
        "time": minutes,
        "signal": f"USR2@{warning_seconds(launcher)}",
        "requeue": True,
        **_dependency(jobs[0].after),
        "export": ",".join(dict.fromkeys((*PASSED_ENV, *launcher.pass_env))),
        **{name: value for name, value in launcher.sbatch.items() if value is not False},
    }


def _dependency(after: Sequence[str]) -> dict[str, str]:
    """Jobs that must end well before; if one does not, SLURM cancels those that wait for it."""
    return {"dependency": f"afterok:{':'.join(after)}", "kill-on-invalid-dep": "yes"} if after else {}


def warning_seconds(launcher: Slurm) -> int:
    """Seconds before the time limit at which a job is signalled: at most a third of it."""
    return min(launcher.warning_seconds, max(1, math.ceil(launcher.hours * 60)) * 20)


def resource_options(launcher: Slurm, resources: Resources) -> dict[str, Any]:
    """The resources of a job under SLURM's names."""
    gpus = resources.gpus if launcher.gpus is None else launcher.gpus
    memory = launcher.memory_gb or resources.memory_gb
    wanted = {
        "partition": launcher.partition,
        "account": launcher.account,
        "qos": launcher.qos,
        "constraint": launcher.constraint,
        "cpus-per-task": launcher.cpus or resources.cpus,
        "gres": ":".join(filter(None, ["gpu", launcher.gpu, str(gpus)])) if gpus else None,
        "mem": f"{math.ceil(memory * 1024)}M" if memory else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def comment(submission: str, start: int) -> str:
    """The comment of an array, by which its jobs are found again."""
    return f"{COMMENT}:{submission}:{start}"


def _option(name: str, value: Any) -> str:
    return f"#SBATCH --{name}" if value is True else f"#SBATCH --{name}={shlex.quote(str(value))}"


def _setup(setup: Sequence[str]) -> Iterator[str]:
    """The profile of a login shell may have replaced PATH. The first line that fails ends the job and is named."""
    yield f"export PATH={shlex.quote(os.environ.get('PATH', ''))}:$PATH"
    if setup:
        yield from TRAP
    for line in setup:
        yield f"rldsl_line={shlex.quote(line)}"
        yield line
        yield "rldsl_code=$?; (exit $rldsl_code) || exit $rldsl_code"
    if setup:
        yield "trap - EXIT"


def _exports(variables: Mapping[str, str]) -> Iterator[str]:
    return (f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def _log_folder(folder: Path) -> Path:
    """Refuses paths that SLURM would not take literally: `%` begins a pattern in the name of a log."""
    if any(sign in str(folder) for sign in "%\n\r\\"):
        raise SpecError(f"SLURM cannot write logs to {folder}: choose a run directory without % and \\ in its path")
    return folder
