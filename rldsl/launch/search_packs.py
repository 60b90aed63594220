"""Packs of a search: sessions with equal shapes that train from the same frame to the same rung."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from rldsl.launch.search_backend import SearchPack
from rldsl.plan.existing import PlannedSession
from rldsl.plan.packs import most_members, pack_key
from rldsl.spec.experiment import Experiment


@dataclass(frozen=True)
class WorkItem:
    """A session to be trained up to a rung."""

    planned: PlannedSession
    until: int | None
    alone: bool = False
    """Whether it may not share a process: it failed with an error in one that it shared."""

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for sessions that can be members of one pack."""
        frame, own = self.planned.on_disk.frame, self.planned.id if self.alone else None
        return (pack_key(self.planned.row.trial), frame, self.until, own)

    @property
    def is_new(self) -> bool:
        """Whether it has not been trained yet."""
        return self.planned.on_disk.frame == 0


class Work:
    """The sessions to start now, on `free` processes; `members` limits the size of a pack, `busy` sessions run.

    `gpu` says whether there are GPUs where they train.
    """

    def __init__(self, free: int, members: int | None, busy: Collection[str], gpu: bool = False) -> None:
        self.free, self.members, self.busy, self.gpu = free, members, busy, gpu
        self.most_new = math.inf
        self._items: dict[str, WorkItem] = {}

    def add(self, items: Iterable[WorkItem]) -> None:
        self._items |= {item.planned.id: item for item in items if item.planned.id not in self.busy}

    def limit_new(self, unsuggested: int, workers: int | None, experiment: Experiment) -> None:
        """Limits new sessions so that all processes together need as few rounds as possible, of about equal size.

        20 sessions in packs of at most 8 train on two processes as 5 and 5, twice, rather than as 8, 8 and 4.
        """
        left = unsuggested + self._new()
        if workers is None or not left:
            return
        most = self._most(most_members(experiment.base(), self.gpu))
        rounds = math.ceil(left / (workers * most))
        self.most_new = self.free * math.ceil(left / (workers * rounds))

    def has_room_for_new(self) -> bool:
        """Whether a new trial could be started."""
        if self._new() >= self.most_new:
            return False
        new = [group for group in _groups(self._items.values()) if group[0].is_new and not group[0].alone]
        return self.processes < self.free or any(len(group) % self._size(group) for group in new)

    def has_room_for(self, items: Sequence[WorkItem]) -> bool:
        """Whether sessions can be trained now: a process is free, or packs that are needed anyway have room."""
        if self.processes < self.free:
            return True
        more = Work(self.free, self.members, self.busy, self.gpu)
        more.add([*self._items.values(), *items])
        return more.processes == self.processes

    @property
    def processes(self) -> int:
        """The processes that the sessions need at least."""
        return sum(math.ceil(len(group) / self._size(group)) for group in _groups(self._items.values()))

    def packs(self) -> list[SearchPack]:
        """The packs to start: as few as possible, but one for each free process if there are enough sessions.

        Those of the first items come first; packs without a process have to wait.
        """
        groups = _groups(self._items.values())
        counts = [math.ceil(len(group) / self._size(group)) for group in groups]
        while sum(counts) < self.free:
            sizes = [math.ceil(len(group) / count) for group, count in zip(groups, counts, strict=True)]
            if max(sizes, default=1) == 1:
                break
            counts[sizes.index(max(sizes))] += 1
        packs = [
            SearchPack([item.planned for item in group[index::count]], group[0].until)
            for group, count in zip(groups, counts, strict=True)
            for index in range(count)
        ]
        return packs[: self.free]

    def _new(self) -> int:
        return sum(item.is_new for item in self._items.values())

    def _size(self, group: Sequence[WorkItem]) -> int:
        return self._most(most_members(group[0].planned.row.trial, self.gpu))

    def _most(self, most: int) -> int:
        return min(most, self.members) if self.members else most


def _groups(items: Iterable[WorkItem]) -> list[list[WorkItem]]:
    groups: dict[tuple[object, ...], list[WorkItem]] = defaultdict(list)
    for item in items:
        groups[item.key].append(item)
    return list(groups.values())
