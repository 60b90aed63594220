"""The configuration of a dstack run for a launcher profile. Only `setup` lines pass through a shell unquoted."""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rldsl.launch.code import LIBRARY
from rldsl.launch.jobs import Resources
from rldsl.spec.dstack import Dstack
from rldsl.store.files import replace_json

FOLDER = ".rldsl"
"""The folder of uploaded files in the working directory of a run."""
CODE, JOBS = "code", "jobs"
"""The two archives."""
PLAN, REQUIREMENTS = "plan.json", "requirements.txt"
"""Files in the archive of jobs."""
NAMES = "runs.json"
"""The names of the runs of a submission, in its folder."""
RAISED = "RLDSL_RAISED"
"""The environment variable with the exit code of a run whose function raised an exception, if not 1."""
LONGEST_NAME = 41
ID = 8


def run_name(name: str) -> str:
    """A unique name that dstack accepts: lower-case letters, digits and hyphens."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not plain[:1].isalpha():
        plain = f"run-{plain}"
    return f"{plain[: LONGEST_NAME - ID - 1].strip('-')}-{uuid.uuid4().hex[:ID]}"


def write_names(folder: Path, names: Sequence[str]) -> None:
    """Writes the names of the runs of a submission, before the first one is started."""
    replace_json(folder / NAMES, list(names))


def read_names(folder: Path) -> list[str]:
    """The names of the runs of a submission; none if it was interrupted before they were chosen."""
    try:
        return [str(name) for name in json.loads((folder / NAMES).read_bytes())]
    except FileNotFoundError:
        return []


def configuration(launcher: Dstack, resources: Resources, archives: Sequence[str]) -> dict[str, Any]:
    """A task that unpacks these archives and runs its job."""
    made = {
        "type": "task",
        "image": launcher.image,
        "python": None if launcher.image else launcher.python or f"3.{sys.version_info.minor}",
        "env": environment(launcher),
        "commands": commands(launcher, archives),
        "resources": _resources(launcher, resources),
        "volumes": list(launcher.volumes),
        "spot_policy": launcher.spot,
        "max_price": launcher.max_price,
        "max_duration": f"{round(launcher.hours * 3600)}s",
        "backends": list(launcher.backends),
        "regions": list(launcher.regions),
        "fleets": list(launcher.fleets),
        "retry": _retry(launcher),
    }
    return {name: value for name, value in made.items() if value not in (None, [])}


def commands(launcher: Dstack, archives: Sequence[str]) -> list[str]:
    """The shell lines of a run: unpack, `setup`, install, run."""
    unpack = [f"mkdir -p {FOLDER}/{one} && tar -xzf {FOLDER}/{one}.tar.gz -C {FOLDER}/{one}" for one in archives]
    setup = [
        f"{{ {line}\n}}" for line in launcher.setup
    ]  # dstack joins lines with &&, so a comment would hide the rest
    install = (
        [f"python -m pip install --quiet --requirement {FOLDER}/{JOBS}/{REQUIREMENTS}"] if launcher.install else []
    )
    path = f'export PYTHONPATH="$PWD/{FOLDER}/{CODE}/{LIBRARY}${{PYTHONPATH:+:$PYTHONPATH}}"'
    run = f"exec python -u -m rldsl.launch.dstack.host {FOLDER}/{JOBS}"
    return [*unpack, *setup, *install, path, run]


def environment(launcher: Dstack) -> dict[str, str]:
    """Environment variables of a run; dstack inserts the values of secrets on the machine."""
    secret = {name.upper(): f"${{{{ secrets.{name} }}}}" for name in launcher.secrets}
    return {**launcher.env, **secret, "SUBMITIT_EXECUTOR": "dstack"}


def _resources(launcher: Dstack, resources: Resources) -> dict[str, Any]:
    wanted: dict[str, Any] = {"cpu": f"{launcher.cpus or resources.cpus}.."}
    wanted["memory"] = f"{launcher.memory_gb or max(1.0, resources.memory_gb):g}GB.."
    wanted["disk"] = f"{launcher.disk_gb:g}GB.." if launcher.disk_gb else None
    gpus = max(resources.gpus, launcher.asked_gpus) if launcher.gpus is None else launcher.gpus
    if gpus:
        memory = f"{launcher.gpu_memory_gb:g}GB.." if launcher.gpu_memory_gb else None
        gpu = {"name": list(launcher.gpu) or None, "memory": memory, "count": gpus}
        wanted["gpu"] = {name: value for name, value in gpu.items() if value is not None}
    return wanted


def _retry(launcher: Dstack) -> dict[str, Any] | None:
    if not launcher.retry_on:
        return None
    return {"on_events": list(launcher.retry_on), "duration": f"{round(launcher.retry_hours * 3600)}s"}
