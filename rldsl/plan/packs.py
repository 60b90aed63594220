"""Packs: sessions that train together in one process because they differ only in per-member settings."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from rldsl.plan.existing import PlannedSession
from rldsl.spec.base import PerMember, identity
from rldsl.spec.device import nets_of, uses_gpu, widest_layer
from rldsl.spec.experiment import Trial
from rldsl.spec.net import Conv

ON_GPU = 32
WIDTHS = ((128, 8), (256, 2))
"""On a CPU: (width of the widest layer, members up to which packing still increases the speed)."""


def make_packs(
    sessions: Iterable[PlannedSession], processes: int, members: int | None = None, gpu: bool = False
) -> list[list[PlannedSession]]:
    """Packs of sessions at the same frame, of at most `members` and small enough to occupy all processes.

    `gpu` says whether there is a GPU where they train.
    """
    groups: dict[str, list[PlannedSession]] = defaultdict(list)
    for planned in sessions:
        groups[f"{pack_key(planned.row.trial)} {planned.on_disk.frame}"].append(planned)
    total = sum(len(group) for group in groups.values())
    size = min(math.ceil(total / max(1, processes)), members or total)
    most = {key: min(size, most_members(group[0].row.trial, gpu)) for key, group in groups.items()}
    return [pack for key, group in groups.items() for pack in _split(group, most[key])]


def _split(group: Sequence[PlannedSession], size: int) -> list[list[PlannedSession]]:
    """As few packs as the size allows, of about equal size."""
    count = math.ceil(len(group) / size)
    return [list(group[index::count]) for index in range(count)]


def pack_key(trial: Trial) -> str:
    """A key that is equal for trials whose sessions can be members of one pack."""
    data = identity(trial)
    for name, field in type(trial.agent).model_fields.items():
        if PerMember in field.metadata:
            data["agent"][name] = data["agent"][name] is None
    return json.dumps([data, identity(trial.compute)], sort_keys=True)


def most_members(trial: Trial, gpu: bool = False) -> int:
    """The maximum number of members of a pack; `gpu` says whether there is a GPU where it trains."""
    if not trial.agent.packs:
        return 1
    if uses_gpu(trial, gpu):
        return ON_GPU
    if any(isinstance(net, Conv) for net in nets_of(trial)):
        return 1
    return next((most for widest, most in WIDTHS if widest_layer(trial) <= widest), 1)
