"""Shapes and memory of a replay buffer, without torch or numpy, for the planner and for the buffer itself."""

from dataclasses import dataclass
from math import prod

FAN_OUT = 32
"""Children of a node of the sum tree: numpy sums 32 numbers about as fast as 2."""
MAX_ROOT_CHILDREN = 2048
"""Children of the sum tree's root: one cumulative sum over them replaces two levels."""
MIN_FINAL_ROWS = 64
ITEM_BYTES = {"float32": 4, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}

Shape = tuple[int, ...]
Arrays = dict[str, tuple[Shape, str]]


@dataclass(frozen=True)
class ReplayShape:
    """A buffer of `capacity` transitions per member, stored as a ring of vector steps.

    With `stack` > 1 the first axis of an observation is a stack of frames, of which only the newest is stored.
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
            raise ValueError(
                f"a replay buffer of {self.capacity} transitions cannot hold one step of {self.num_envs} envs"
            )
        if self.stack > 1 and self.observation[0] != self.stack:
            raise ValueError(f"an observation of shape {self.observation} is no stack of {self.stack} frames")

    @property
    def kept(self) -> int:
        """Vector steps whose transitions can be sampled."""
        return self.capacity // self.num_envs

    @property
    def gap(self) -> int:
        """Slots that cannot be sampled: the current observation, and the earlier frames of the oldest stack."""
        return self.stack

    @property
    def slots(self) -> int:
        """Vector steps in the ring."""
        return self.kept + self.gap

    @property
    def places(self) -> int:
        """Transitions in the ring, per member."""
        return self.slots * self.num_envs

    @property
    def frame(self) -> Shape:
        """Shape of the stored part of an observation: all of it, or its newest frame."""
        return self.observation[1:] if self.stack > 1 else self.observation

    def arrays(self) -> Arrays:
        """Shape and dtype of the arrays of the ring, by name."""
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
        """Memory of all members while `ends` final observations of episodes are stored."""
        ring = sum(prod(shape) * ITEM_BYTES[dtype] for shape, dtype in self.arrays().values())
        final = prod(self.frame) * ITEM_BYTES[self.dtype] + ITEM_BYTES["int32"]
        tree = 8 * sum(map(prod, tree_shapes(self.members, self.places))) if self.prioritized else 0
        return ring + final_rows(ends, self.members * self.places) * final + tree


def final_rows(ends: int, max_rows: int) -> int:
    """Rows allocated for the final observations of `ends` episodes: a power of two times the minimum."""
    rows = MIN_FINAL_ROWS
    while rows < ends:
        rows *= 2
    return min(rows, max_rows)


def tree_shapes(members: int, size: int) -> list[tuple[int, int]]:
    """Shapes of the levels of a sum tree, from the priorities to the children of the root."""
    depth = 0
    while -(-size // FAN_OUT**depth) > MAX_ROOT_CHILDREN:
        depth += 1
    top = -(-size // FAN_OUT**depth)
    return [(members, top * FAN_OUT ** (depth - level)) for level in range(depth + 1)]
