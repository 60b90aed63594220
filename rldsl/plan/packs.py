"""Packs: sessions that train together in one process because they differ only in per-member settings."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from rldsl.plan.existing import PlannedSession
from rldsl.spec.base import PerMember, identity
from rldsl.spec.experiment import Trial
from rldsl.spec.net import Conv, Net, Recurrent

ON_GPU = 32
WIDTHS = ((128, 8), (256, 2))
"""On a CPU: (width of the widest layer, members up to which packing still increases the speed)."""


def make_packs(
    sessions: Iterable[PlannedSession], processes: int, members: int | None = None
) -> list[list[PlannedSession]]:
    """Packs of sessions at the same frame, of at most `members` and small enough to occupy all processes."""
    groups: dict[str, list[PlannedSession]] = defaultdict(list)
    for planned in sessions:
        groups[f"{pack_key(planned.row.trial)} {planned.on_disk.frame}"].append(planned)
    total = sum(len(group) for group in groups.values())
    size = min(math.ceil(total / max(1, processes)), members or total)
    return [pack for group in groups.values() for pack in _split(group, min(size, most_members(group[0].row.trial)))]


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


def most_members(trial: Trial) -> int:
    """The maximum number of members of a pack."""
    if not trial.agent.packs:
        return 1
    if trial.compute.device != "cpu":
        return ON_GPU
    width = max((size for net in _nets(trial) for size in _layers(net)), default=0)
    if any(isinstance(net, Conv) for net in _nets(trial)):
        return 1
    return next((most for widest, most in WIDTHS if width <= widest), 1)


def _layers(net: Net) -> tuple[int, ...]:
    return (*getattr(net, "hidden", ()), *([net.size] if isinstance(net, Recurrent) else []))


def _nets(trial: Trial) -> list[Net]:
    nets = [getattr(trial.agent, name, None) for name in ("net", "critic_net")]
    return [net for net in nets if net is not None]
