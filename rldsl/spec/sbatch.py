"""Options of sbatch that a launcher profile may pass on, checked by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from rldsl.spec.errors import suggestion
from rldsl.spec.text import looks_secret

FREE = frozenset(
    [
        "bb",
        "bbf",
        "begin",
        "cluster-constraint",
        "contiguous",
        "core-spec",
        "cores-per-socket",
        "cpu-freq",
        "cpus-per-gpu",
        "deadline",
        "delay-boot",
        "distribution",
        "exclude",
        "exclusive",
        "extra-node-info",
        "gpu-bind",
        "gpu-freq",
        "gres-flags",
        "hold",
        "licenses",
        "mail-type",
        "mail-user",
        "mcs-label",
        "mem-per-cpu",
        "mem-per-gpu",
        "mincpus",
        "network",
        "nice",
        "nodefile",
        "nodelist",
        "ntasks-per-core",
        "overcommit",
        "oversubscribe",
        "power",
        "prefer",
        "priority",
        "profile",
        "propagate",
        "reboot",
        "reservation",
        "sockets-per-node",
        "spread-job",
        "switches",
        "thread-spec",
        "threads-per-core",
        "time-min",
        "tmp",
        "use-min-nodes",
        "wckey",
    ]
)
"""Options that rldsl does not set itself."""
FIELDS = {
    "account": "account",
    "constraint": "constraint",
    "container": "container",
    "cpus-per-task": "cpus",
    "export": "pass_env",
    "gpus": "gpus",
    "gpus-per-node": "gpus",
    "gpus-per-task": "gpus",
    "gres": "gpus",
    "mem": "memory_gb",
    "partition": "partition",
    "qos": "qos",
    "signal": "warning_seconds",
    "time": "hours",
}
"""Options that are fields of their own."""
OURS = frozenset(
    [
        "array",
        "chdir",
        "clusters",
        "comment",
        "dependency",
        "error",
        "export-file",
        "get-user-env",
        "gid",
        "gpus-per-socket",
        "help",
        "ignore-pbs",
        "input",
        "job-name",
        "no-kill",
        "no-requeue",
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "ntasks-per-socket",
        "open-mode",
        "output",
        "parsable",
        "quiet",
        "requeue",
        "test-only",
        "uid",
        "usage",
        "verbose",
        "version",
        "wait",
        "wait-all-nodes",
        "wrap",
    ]
)
"""Options that rldsl sets, or that would break how it submits jobs."""
_VALUE = re.compile(r"[^\x00-\x1f\x7f\x85\u2028\u2029]*")


def _dashed(options: object) -> object:
    """Also accepts `mail_user`."""
    if not isinstance(options, Mapping):
        return options
    return {str(name).replace("_", "-"): value for name, value in options.items()}


def _checked(options: dict[str, bool | int | str]) -> dict[str, bool | int | str]:
    for name, value in options.items():
        if name in FIELDS:
            raise PydanticCustomError("sbatch", "{name} is the field {field}", {"name": name, "field": FIELDS[name]})
        if name in OURS:
            raise PydanticCustomError("sbatch", "{name} cannot be set: rldsl sets it", {"name": name})
        if name not in FREE:
            words = {"name": name, "nearest": suggestion(name, FREE)}
            raise PydanticCustomError("sbatch", "{name} is no option of sbatch; {nearest}", words)
        if _VALUE.fullmatch(str(value)) is None:
            raise PydanticCustomError("sbatch", "{name} should be one line", {"name": name})
        if looks_secret("", str(value)):
            raise PydanticCustomError("secret", "{name} looks like a secret", {"name": name})
    return options


SbatchOptions: TypeAlias = Annotated[dict[str, bool | int | str], BeforeValidator(_dashed), AfterValidator(_checked)]
"""Long names of options and their values; True for an option without one."""
