"""Replay buffer: the last transitions of every member, in a ring of vector steps that stores each observation once.

The next observation of a transition is the one in the next slot of its environment or, where the episode ended, the
true final observation, kept in `FinalObservations`. Of stacked frames only the newest is stored; the stacks are
rebuilt when transitions are sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from rldsl.envs.contract import Step
from rldsl.memory.final_observations import FinalObservations
from rldsl.memory.priorities import Priorities
from rldsl.memory.replay_size import ReplayShape
from rldsl.store.append_only_ring import SEGMENTS, AppendOnlyRing, Saved

Batch = dict[str, np.ndarray]

NOT_ENDED = -1
"""In `final`: the episode did not end with this transition."""
SEGMENT_BYTES = 4_000_000
"""A large ring is checkpointed in files of about this size."""
MAX_SEGMENTS = 256
UNCHECKED: Final = "wrap"
"""Mode of `np.take` for indices known to be valid: the default mode copies its output to check them first."""


class ReplayBuffer:
    """Arrays `[M, slots, N, ...]`; `gamma`, `n_step` and `alpha` (prioritized replay) have one value per member.

    Call `begin` with the first observations, `write` after every step, and then `sample`. Transitions are addressed by
    their index within a member's ring: slot * N + environment.
    """

    def __init__(
        self,
        shape: ReplayShape,
        gamma: Sequence[float],
        n_step: Sequence[int] | None = None,
        alpha: Sequence[float] | None = None,
    ) -> None:
        self.shape = shape
        self.members, self.num_envs = shape.members, shape.num_envs
        ring = {name: np.zeros(size, dtype) for name, (size, dtype) in shape.arrays().items()}
        self.observation, self.action, self.reward = ring["observation"], ring["action"], ring["reward"]
        self.terminated, self.final = ring["terminated"], ring["final"]
        self.age = ring.get("age")
        """Steps since the start of the episode, counted up to the stack's depth; None without stacked frames."""
        self.final[:] = NOT_ENDED
        self.finals = FinalObservations(shape.members * shape.places, shape.frame, shape.dtype)
        self.priorities = Priorities(shape.members, shape.places, alpha or ()) if shape.prioritized else None
        self.gamma = np.asarray(gamma, np.float64).reshape(-1, 1)
        self.n_step = np.asarray(n_step or [1] * shape.members).reshape(-1, 1)
        self.written = 0
        """Vector steps written since the start; the current observation is in slot `written % slots`."""
        self._saved: list[Saved] = [{} for _ in range(shape.members)]
        self._max_n_step = int(self.n_step.max())
        # Flat views over all members: the transition `index` of member m is at m * places + index.
        self._first = np.arange(shape.members)[:, None] * shape.places
        self._frames = self.observation.reshape(-1, *shape.frame)
        self._actions = self.action.reshape(-1, *shape.action)
        self._rewards, self._terminated, self._final = (
            array.reshape(-1) for array in (self.reward, self.terminated, self.final)
        )
        self._newest_of_stack: tuple[Any, ...] = (..., -1, *(slice(None) for _ in shape.frame))

    @property
    def count(self) -> int:
        """Transitions of a member that can be sampled."""
        return min(self.written, self.shape.kept) * self.num_envs

    @property
    def nbytes(self) -> int:
        """Current memory of all arrays."""
        ring = [getattr(self, name) for name in self.shape.arrays()]
        tree = self.priorities.tree.levels if self.priorities else []
        return sum(array.nbytes for array in [*ring, *tree, self.finals.rows, self.finals.free])

    # Writing

    def begin(self, observation: np.ndarray) -> None:
        """Start an episode in every row with `observation` `[rows, ...]`; episodes in progress count as truncated."""
        head = self.written % self.shape.slots
        if self.written:
            self._truncate_episodes(head)
        self.observation[:, head] = self._stored_part(self._by_member(observation))
        if self.age is not None:
            self.age[:, head] = 0
            self._check_padding(observation)

    def write(self, action: np.ndarray, step: Step) -> None:
        """Add the actions taken at the current observations, `[M, N, ...]` or `[rows, ...]`, and their outcome."""
        head, rows = self.written % self.shape.slots, (self.members, self.num_envs)
        self.action[:, head] = action.reshape(*rows, *self.shape.action)
        self.reward[:, head] = step.reward.reshape(rows)
        self.terminated[:, head] = step.terminated.reshape(rows)
        self._write_finals(head, step.ended, step.final_observation)
        self.written += 1
        new_head = self.written % self.shape.slots
        self.observation[:, new_head] = self._stored_part(self._by_member(step.observation))
        if self.age is not None:
            self._write_age(head, new_head, step)
        if self.priorities is not None:
            overwritten = (self.written - self.shape.kept - 1) % self.shape.slots
            removed = self._indices_of(overwritten) if self.written > self.shape.kept else self._indices_of(0)[:0]
            self.priorities.replace(self._indices_of(head), removed)

    def prioritize(self, index: np.ndarray, error: np.ndarray) -> None:
        """Update the priorities of sampled transitions `index` `[M, B]` from their TD errors `[M, B]`."""
        assert self.priorities is not None
        self.priorities.update(index, error)

    # Sampling

    def allocate(self, count: int, size: int) -> Batch:
        """Arrays `[count, M, size, ...]` for `sample` to write into."""
        rows, dtype = (count, self.members, size), self.shape.dtype
        batch = {
            "action": np.empty((*rows, *self.shape.action), self.action.dtype),
            "reward": np.empty(rows, np.float32),
            "discount": np.empty(rows, np.float32),
            "terminated": np.empty(rows, bool),
            "observation": np.empty((*rows, *self.shape.observation), dtype),
            "next_observation": np.empty((*rows, *self.shape.observation), dtype),
            "index": np.empty(rows, np.int64),
        }
        batch["discount"][:] = self.gamma  # one-step returns leave it as it is
        return {**batch, "weight": np.empty(rows, np.float32)} if self.priorities is not None else batch

    def sample(
        self,
        count: int,
        size: int,
        rngs: Sequence[np.random.Generator],
        beta: np.ndarray | None = None,
        include_newest: bool = False,
        out: Batch | None = None,
    ) -> Batch:
        """`count` minibatches of `size` transitions per member, drawn with its own RNG: arrays `[count, M, size, ...]`.

        - `reward`: the sum of n discounted rewards, or fewer up to the end of the episode or the newest step.
        - `discount`: gamma^k, k the number of rewards in the sum.
        - `next_observation`, `terminated`: the observation after the last of these steps, and whether it was terminal.
        - `index`: for `prioritize`; `weight`, if prioritized: importance weights with the exponent `beta` `[M]`.

        With `include_newest` every minibatch starts with the transitions of the newest step (Zhang & Sutton 2017,
        arXiv:1712.01275). `out` is what `allocate` returned for the same `count` and `size`.
        """
        if not self.written:
            raise ValueError("nothing was written yet: there is nothing to sample")
        batch = self.allocate(count, size) if out is None else out
        uniform = np.empty((self.members, count, size))
        for row, rng in zip(uniform, rngs, strict=True):
            rng.random(out=row)
        index = self._draw(uniform)
        if include_newest:
            newest = self._indices_of((self.written - 1) % self.shape.slots)[-size:]
            index[:, :, : len(newest)] = newest
        batch["index"][:] = index.swapaxes(0, 1)
        self._gather(batch)
        if self.priorities is not None:
            weight = self.priorities.weights(index, np.ones(self.members) if beta is None else beta)
            batch["weight"][:] = weight.swapaxes(0, 1)
        return batch

    def _draw(self, uniform: np.ndarray) -> np.ndarray:
        """Indices `[M, count, size]` of transitions, uniformly or by priority."""
        if self.priorities is not None:
            return self.priorities.sample(uniform)
        index = (uniform * self.count).astype(np.int64)
        oldest_slot = max(self.written - self.shape.kept, 0) % self.shape.slots
        return self._wrap(index + oldest_slot * self.num_envs) if oldest_slot else index

    def _gather(self, batch: Batch) -> None:
        """Fill `batch` with the transitions at `batch["index"]`."""
        place = batch["index"] if self.members == 1 else batch["index"] + self._first
        last = self._n_step_returns(place, batch)
        self._actions.take(place, 0, batch["action"], UNCHECKED)
        self._terminated.take(last, None, batch["terminated"], UNCHECKED)
        next_observation = batch["next_observation"]
        if self.age is None:
            self._frames.take(place, 0, batch["observation"], UNCHECKED)
            # with a single ring, the "wrap" mode of `take` already wraps around
            following = last + self.num_envs if self.members == 1 else self._next_place(last)
            self._frames.take(following, 0, next_observation, UNCHECKED)
        else:
            self._take_stacks(place, 0, batch["observation"])
            self._take_stacks(last, 1, next_observation)
        final = self._final.take(last.reshape(-1))
        ended = np.flatnonzero(final != NOT_ENDED)
        if ended.size:
            rows = next_observation.reshape(-1, *self.shape.observation)
            newest = rows if self.age is None else rows[:, -1]
            newest[ended] = self.finals.rows[final[ended]]

    def _n_step_returns(self, place: np.ndarray, batch: Batch) -> np.ndarray:
        """Write n-step returns and their discounts into `batch`; return the places of the last transitions."""
        if self._max_n_step == 1:
            self._rewards.take(place, None, batch["reward"], UNCHECKED)
            return place
        reward = self._rewards.take(place)
        discount = np.broadcast_to(self.gamma, place.shape)
        available = (self.written - batch["index"] // self.num_envs) % self.shape.slots  # up to the newest step
        steps = np.minimum(available, self.n_step)
        for k in range(1, self._max_n_step):
            extend = (k < steps) & self._continues(place)
            place = np.where(extend, self._next_place(place), place)
            reward = np.where(extend, reward + discount * self._rewards.take(place), reward)
            discount = np.where(extend, discount * self.gamma, discount)
        batch["reward"][:], batch["discount"][:] = reward, discount
        return place

    def _continues(self, place: np.ndarray) -> np.ndarray:
        """Whether a return may extend beyond a transition. A lost life is terminal although the episode continues."""
        continues: np.ndarray = (self._final.take(place) == NOT_ENDED) & ~self._terminated.take(place)
        return continues

    def _take_stacks(self, place: np.ndarray, offset: int, out: np.ndarray) -> None:
        """Frame stacks whose newest frame is `offset` steps after `place`; zeros before the start of the episode."""
        assert self.age is not None
        offsets = np.arange(offset - self.shape.stack + 1, offset + 1)
        first = self._first[..., None]
        frames = self._wrap(place[..., None] - first + offsets * self.num_envs) + first
        self._frames.take(frames, 0, out, UNCHECKED)
        out[-offsets > self.age.reshape(-1).take(place)[..., None]] = 0

    # Indices: `index` counts within one member's ring, `place` over the rings of all members

    def _wrap(self, index: np.ndarray) -> np.ndarray:
        return index % self.shape.places

    def _next_place(self, place: np.ndarray) -> np.ndarray:
        """The places of the same environments one step later."""
        return self._wrap(place - self._first + self.num_envs) + self._first

    def _indices_of(self, slot: int) -> np.ndarray:
        return np.arange(slot * self.num_envs, (slot + 1) * self.num_envs)

    # Parts of `begin` and `write`

    def _by_member(self, observation: np.ndarray) -> np.ndarray:
        return observation.reshape(self.members, self.num_envs, *self.shape.observation)

    def _stored_part(self, observation: np.ndarray) -> np.ndarray:
        """Of observations `[..., *shape]`, the newest frame if frames are stacked."""
        return observation if self.age is None else observation[self._newest_of_stack]

    def _write_finals(self, slot: int, ended: np.ndarray, observation: np.ndarray) -> None:
        """Store the final observations of the rows that ended, in place of those of the step being overwritten."""
        if self.written >= self.shape.slots:
            overwritten = self.final[:, slot]
            self.finals.remove(overwritten[overwritten != NOT_ENDED])
            self.final[:, slot] = NOT_ENDED
        if ended.size:
            numbers = self.finals.add(self._stored_part(observation))
            self.final[ended // self.num_envs, slot, ended % self.num_envs] = numbers

    def _truncate_episodes(self, head: int) -> None:
        """Make the current observations the final ones of the episodes in progress."""
        member, env = np.nonzero(self.final[:, head - 1] == NOT_ENDED)
        self.final[member, head - 1, env] = self.finals.add(self.observation[member, head, env])

    def _write_age(self, head: int, new_head: int, step: Step) -> None:
        assert self.age is not None
        age = np.minimum(self.age[:, head] + 1, self.shape.stack - 1)
        age.reshape(-1)[step.ended] = 0
        self.age[:, new_head] = age
        self._check_padding(step.observation[step.ended])

    def _check_padding(self, first: np.ndarray) -> None:
        """Frames before an episode's first are not stored: they must be the zeros that `_take_stacks` fills in."""
        if first[:, :-1].any():
            raise ValueError("the first observation of an episode must be one frame behind zeros to be kept unstacked")

    # Checkpoints

    def steps(self, member: int) -> AppendOnlyRing:
        """All steps of one member as an append-only ring. It reads the arrays when saved: before the next `write`."""
        first, slots = max(self.written - self.shape.slots + 1, 0), self.shape.slots
        segments = min(max(self._frames.nbytes // self.members // SEGMENT_BYTES, SEGMENTS), MAX_SEGMENTS)
        read = partial(self._read_steps, member)
        return AppendOnlyRing(first, self.written, slots, read, self._saved[member], segments)

    def state(self, member: int) -> dict[str, Any]:
        """One member's part of the buffer."""
        head = self.written % self.shape.slots
        present = {"observation": self.observation[member, head].copy()}
        if self.age is not None:
            present["age"] = self.age[member, head].copy()
        state = {"written": self.written, "present": present, "steps": self.steps(member)}
        if self.priorities is not None:
            used = min(self.written, self.shape.slots) * self.num_envs
            state["priorities"] = self.priorities.state(member, used)
        return state

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Load one member's part; all members of a pack have written the same number of steps."""
        self.written = state["written"]
        self._saved[member] = dict(state["steps"].saved)
        self._remove_finals(member)
        for first, arrays in state["steps"]:
            self._restore_steps(member, first, arrays)
        for name, array in state["present"].items():
            getattr(self, name)[member, self.written % self.shape.slots] = array
        if self.priorities is not None:
            self.priorities.restore(member, state["priorities"])

    def _read_steps(self, member: int, first: int, last: int) -> dict[str, np.ndarray]:
        """Steps `first` to `last` (exclusive), which are contiguous, and the final observations within them."""
        slots = slice(first % self.shape.slots, first % self.shape.slots + last - first)
        final = self.final[member, slots].reshape(-1)
        ended = np.flatnonzero(final != NOT_ENDED)
        ring = {name: getattr(self, name)[member, slots] for name in self._saved_arrays}
        return {**ring, "ended": ended, "final_observation": self.finals.rows[final[ended]]}

    def _restore_steps(self, member: int, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Load a segment, without the steps at its start that the ring has already overwritten."""
        old = max(self.written - self.shape.slots + 1 - first, 0)
        begin = (first + old) % self.shape.slots
        for name in self._saved_arrays:
            getattr(self, name)[member, begin : begin + len(arrays[name]) - old] = arrays[name][old:]
        kept = arrays["ended"] >= old * self.num_envs
        index = arrays["ended"][kept] + (begin - old) * self.num_envs
        self.final[member].reshape(-1)[index] = self.finals.add(arrays["final_observation"][kept])

    def _remove_finals(self, member: int) -> None:
        final = self.final[member]
        self.finals.remove(final[final != NOT_ENDED])
        self.final[member] = NOT_ENDED

    @property
    def _saved_arrays(self) -> list[str]:
        return [name for name in self.shape.arrays() if name != "final"]
