"""How much memory a replay buffer takes, from shapes alone: the plan announces it, the buffer is made from it."""

from dataclasses import dataclass
from math import prod

FAN = 32
"""Children of a node of the sum tree: numpy sums a block of them about as fast as it sums two."""
TOP = 2048
"""Nodes below the sum tree's root at most: one cumulative sum over them replaces two levels."""
FEWEST_FINALS = 64
ITEM = {"float32": 4, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}
"""Bytes of a number; without numpy, which a plan need not wait for."""

Shape = tuple[int, ...]
Arrays = dict[str, tuple[Shape, str]]


@dataclass(frozen=True)
class ReplayShape:
    """The shape of a buffer: `capacity` transitions a member, in a ring of steps of all its environments.

    With `stack` above 1, the first axis of an observation holds its last `stack` frames, and one of them is kept.
    """

    capacity: int
    members: int
    num_envs: int
    observation: Shape
    dtype: str = "float32"
    action: Shape = ()
    stack: int = 1
    prioritized: bool = False

    def __post_init__(self) -> None:
        if self.capacity < self.num_envs:
            raise ValueError(f"a replay of {self.capacity} transitions cannot hold one step of {self.num_envs} envs")
        if self.stack > 1 and self.observation[0] != self.stack:
            raise ValueError(f"an observation of shape {self.observation} is no stack of {self.stack} frames")

    @property
    def kept(self) -> int:
        """Steps that can be sampled at a time."""
        return self.capacity // self.num_envs

    @property
    def gap(self) -> int:
        """Slots that cannot be: that of the present observation, and the frames behind the oldest stack."""
        return self.stack

    @property
    def slots(self) -> int:
        return self.kept + self.gap

    @property
    def places(self) -> int:
        """Transitions of a member for which there is a place: slots times environments."""
        return self.slots * self.num_envs

    @property
    def frame(self) -> Shape:
        """What is kept of one observation."""
        return self.observation[1:] if self.stack > 1 else self.observation

    def arrays(self) -> Arrays:
        """The ring: shape and dtype by name."""
        rows = (self.members, self.slots, self.num_envs)
        ring: Arrays = {
            "observation": ((*rows, *self.frame), self.dtype),
            "action": ((*rows, *self.action), "float32" if self.action else "int64"),
            "reward": (rows, "float32"),
            "terminated": (rows, "bool"),
            "final": (rows, "int32"),
        }
        return {**ring, "age": (rows, "uint8")} if self.stack > 1 else ring

    def bytes(self, ends: int = 0) -> int:
        """What all members' arrays take while they hold `ends` ends of episodes."""
        ring = sum(prod(shape) * ITEM[dtype] for shape, dtype in self.arrays().values())
        final = prod(self.frame) * ITEM[self.dtype] + ITEM["int32"]
        tree = 8 * sum(map(prod, tree_shapes(self.members, self.places))) if self.prioritized else 0
        return ring + final_rows(ends, self.members * self.places) * final + tree


def final_rows(ends: int, most: int) -> int:
    """Rows that are made for the last observations of `ends` episodes: twice as many whenever they are full."""
    rows = FEWEST_FINALS
    while rows < ends:
        rows *= 2
    return min(rows, most)


def tree_shapes(members: int, size: int) -> list[tuple[int, int]]:
    """The levels of a sum tree, the priorities first, the nodes below the root last."""
    depth = 0
    while -(-size // FAN**depth) > TOP:
        depth += 1
    top = -(-size // FAN**depth)
    return [(members, top * FAN ** (depth - level)) for level in range(depth + 1)]
