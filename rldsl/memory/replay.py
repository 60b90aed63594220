"""Replay: the last transitions of every member, each observation kept once, drawn again in batches.

A ring of steps: the observation that follows a transition is the one at the next slot of its environment, or, where the
episode ended, its true last one, which `Finals` keeps. Stacked frames are kept one by one and stacked when drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rldsl.envs.contract import Step
from rldsl.maths.replay_size import ReplayShape
from rldsl.memory.finals import Finals
from rldsl.memory.priorities import Priorities
from rldsl.store.append_only_ring import SEGMENTS, AppendOnlyRing, Saved

Batch = dict[str, np.ndarray]
ON = -1
"""In `final`: the episode goes on."""
SEGMENT_BYTES = 4_000_000
"""About so much of a large ring is a file of its checkpoint."""
MOST_SEGMENTS = 256
SEEN = ("observation", "next_observation")
CHECKED = "wrap"
"""The mode of `take` for places that are known to be there: to check them again, it would copy."""


class Replay:
    """Arrays `[M, slots, N, ...]`. `gamma`, `n` (steps of a return) and `alpha` are one number a member.

    Call `begin` with the first observations, then `write` after every step, then `sample`.
    """

    def __init__(
        self,
        shape: ReplayShape,
        gamma: Sequence[float],
        n: Sequence[int] | None = None,
        alpha: Sequence[float] | None = None,
    ) -> None:
        self.shape = shape
        self.members, self.num_envs = shape.members, shape.num_envs
        ring = {name: np.zeros(size, dtype) for name, (size, dtype) in shape.arrays().items()}
        self.observation, self.action, self.reward = ring["observation"], ring["action"], ring["reward"]
        self.terminated, self.final, self.age = ring["terminated"], ring["final"], ring.get("age")
        self.final[:] = ON
        self.finals = Finals(shape.members * shape.places, shape.frame, shape.dtype)
        self.priorities = Priorities(shape.members, shape.places, alpha or ()) if shape.prioritized else None
        self.gamma = np.asarray(gamma, np.float64).reshape(-1, 1)
        self.n = np.asarray(n or [1] * shape.members).reshape(-1, 1)
        self.written = 0
        """Steps since the beginning; the present observation is at slot `written` modulo the number of slots."""
        self._saved: list[Saved] = [{} for _ in range(shape.members)]
        self._room: Batch | None = None
        self._most_steps = int(self.n.max())
        self._first = np.arange(shape.members)[:, None] * shape.places
        self._frames = self.observation.reshape(-1, *shape.frame)
        self._actions = self.action.reshape(-1, *shape.action)
        self._rewards, self._terminated, self._final = (
            array.reshape(-1) for array in (self.reward, self.terminated, self.final)
        )
        self._newest: tuple[Any, ...] = (..., -1, *(slice(None) for _ in shape.frame))

    @property
    def count(self) -> int:
        """Transitions of a member that can be drawn."""
        return min(self.written, self.shape.kept) * self.num_envs

    @property
    def nbytes(self) -> int:
        """What all arrays take now."""
        ring = [getattr(self, name) for name in self.shape.arrays()]
        tree = self.priorities.tree.levels if self.priorities else []
        return sum(array.nbytes for array in [*ring, *tree, self.finals.rows, self.finals.unused])

    def begin(self, observation: np.ndarray) -> None:
        """Every row begins an episode with `[rows, ...]`; episodes that were under way are cut where they were."""
        head = self.written % self.shape.slots
        if self.written:
            self._cut(head)
        self.observation[:, head] = self._newest_frame(self._rows(observation))
        if self.age is not None:
            self.age[:, head] = 0
            self._check_padding(observation)

    def write(self, action: np.ndarray, step: Step) -> None:
        """What was done at the present observations, `[M, N, ...]` or by rows, and what it gave."""
        head, rows = self.written % self.shape.slots, (self.members, self.num_envs)
        self.action[:, head] = action.reshape(*rows, *self.shape.action)
        self.reward[:, head] = step.reward.reshape(rows)
        self.terminated[:, head] = step.terminated.reshape(rows)
        self._keep_finals(head, step.ended, step.final_observation)
        self.written += 1
        following = self.written % self.shape.slots
        self.observation[:, following] = self._newest_frame(self._rows(step.observation))
        if self.age is not None:
            self._grow_older(head, following, step)
        if self.priorities is not None:
            lost = (self.written - self.shape.kept - 1) % self.shape.slots  # the oldest until now
            gone = self._places_of(lost) if self.written > self.shape.kept else self._places_of(0)[:0]
            self.priorities.replace(self._places_of(head), gone)

    def sample(
        self,
        count: int,
        size: int,
        streams: Sequence[np.random.Generator],
        beta: np.ndarray | None = None,
        newest: bool = False,
    ) -> Batch:
        """`count` batches of `size` transitions a member, drawn with its own stream: arrays `[count, M, size, ...]`.

        `reward` is the sum of n discounted rewards, fewer up to the end of an episode or the newest step; `discount` is
        gamma^k, k their number; `next_observation` is what was seen behind them, and worth nothing where `terminated`.
        `index` and `weight` are for prioritized replay, `beta` `[M]` is its exponent. With `newest`, the transitions of
        the newest step come first in every batch (Zhang & Sutton 2017, arXiv:1712.01275).

        The next call for as many may overwrite the arrays: they are the replay's own.
        """
        if not self.written:
            raise ValueError("nothing was written yet: there is nothing to sample")
        uniform = np.empty((self.members, count, size))
        for own, stream in zip(uniform, streams, strict=True):
            stream.random(out=own)
        index = self._draw(uniform)
        if newest:
            latest = self._places_of((self.written - 1) % self.shape.slots)[-size:]
            index[:, :, : len(latest)] = latest
        batch = self._gather(np.ascontiguousarray(index.swapaxes(0, 1)))
        if self.priorities is not None:
            weight = self.priorities.weights(index, np.ones(self.members) if beta is None else beta)
            batch["weight"] = np.ascontiguousarray(weight.swapaxes(0, 1))
        return batch

    def prioritize(self, index: np.ndarray, error: np.ndarray) -> None:
        """Sets the priorities of `index` `[M, B]`, as a batch has it, by the TD errors `[M, B]`."""
        assert self.priorities is not None
        self.priorities.update(index, error)

    # Drawing

    def _draw(self, uniform: np.ndarray) -> np.ndarray:
        """Transitions `[M, count, size]` by their places in the ring."""
        if self.priorities is not None:
            return self.priorities.draw(uniform)
        index = (uniform * self.count).astype(np.int64)
        return self._wrap(index + self._oldest * self.num_envs) if self._oldest else index

    def _gather(self, index: np.ndarray) -> Batch:
        room = self._room_for(index.shape)
        place = index if self.members == 1 else index + self._first
        last = self._returns(index, place, room)
        self._actions.take(place, 0, room["action"], CHECKED)
        self._terminated.take(last, None, room["terminated"], CHECKED)
        if self.age is None:
            self._frames.take(place, 0, room["observation"], CHECKED)
            self._take_next_frames(last, room["next_observation"])
            return {**room, "index": index}
        next_frames = self._take_next_frames(last, np.empty((*last.shape, *self.shape.frame), self.shape.dtype))
        behind = self._stack(last, self.shape.stack - 1), np.expand_dims(next_frames, last.ndim)
        seen = {"observation": self._stack(place, self.shape.stack), "next_observation": np.concatenate(behind, 3)}
        return {**room, **seen, "index": index}

    def _room_for(self, shape: tuple[int, ...]) -> Batch:
        """Memory for batches `shape`, the same as in the last call if that was for as many."""
        if self._room is None or self._room["reward"].shape != shape:
            self._room = {
                "action": np.empty((*shape, *self.shape.action), self.action.dtype),
                "reward": np.empty(shape, np.float32),
                "discount": np.empty(shape, np.float32),
                "terminated": np.empty(shape, bool),
            }
            self._room["discount"][:] = self.gamma
            if self.age is None:
                frames = (*shape, *self.shape.frame)
                self._room |= {name: np.empty(frames, self.shape.dtype) for name in SEEN}
        return self._room

    def _returns(self, index: np.ndarray, place: np.ndarray, room: Batch) -> np.ndarray:
        """Puts n-step returns and the discounts of what follows into `room`; returns the places of the last
        transitions."""
        if self._most_steps == 1:
            self._rewards.take(place, None, room["reward"], CHECKED)
            return place
        reward = self._rewards.take(place)
        discount = np.broadcast_to(self.gamma, place.shape)
        steps = np.minimum((self.written - index // self.num_envs) % self.shape.slots, self.n)  # to the present
        for k in range(1, self._most_steps):
            on = (k < steps) & self._goes_on(place)
            place = np.where(on, self._after(place), place)
            reward = np.where(on, reward + discount * self._rewards.take(place), reward)
            discount = np.where(on, discount * self.gamma, discount)
        room["reward"][:], room["discount"][:] = reward, discount
        return place

    def _goes_on(self, place: np.ndarray) -> np.ndarray:
        """Whether a return may go beyond a transition: a lost life ends it, though the episode goes on."""
        goes_on: np.ndarray = (self._final.take(place) == ON) & ~self._terminated.take(place)
        return goes_on

    def _take_next_frames(self, place: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """What was seen after the transitions: at the next slot, or the last of the episode."""
        after = place + self.num_envs if self.members == 1 else self._after(place)  # `wrap` begins anew
        self._frames.take(after, 0, frames, CHECKED)
        final = self._final.take(place.reshape(-1))
        ended = np.flatnonzero(final != ON)
        if ended.size:
            frames.reshape(-1, *self.shape.frame)[ended] = self.finals.rows[final[ended]]
        return frames

    def _stack(self, place: np.ndarray, depth: int) -> np.ndarray:
        """The frames of the last `depth` steps of the episode up to a place; zeros before it began."""
        assert self.age is not None
        back = np.arange(depth - 1, -1, -1)
        first = self._first[..., None]
        frames = self._frames.take(self._wrap(place[..., None] - first - back * self.num_envs) + first, 0)
        frames[back > self.age.reshape(-1).take(place)[..., None]] = 0
        return frames

    # Places

    @property
    def _oldest(self) -> int:
        """The slot of the oldest step that can be drawn."""
        return max(self.written - self.shape.kept, 0) % self.shape.slots

    def _wrap(self, index: np.ndarray) -> np.ndarray:
        return index % self.shape.places

    def _after(self, place: np.ndarray) -> np.ndarray:
        """The places of the same environments one step later."""
        return self._wrap(place - self._first + self.num_envs) + self._first

    def _places_of(self, slot: int) -> np.ndarray:
        return np.arange(slot * self.num_envs, (slot + 1) * self.num_envs)

    # Writing

    def _rows(self, observation: np.ndarray) -> np.ndarray:
        return observation.reshape(self.members, self.num_envs, *self.shape.observation)

    def _newest_frame(self, observation: np.ndarray) -> np.ndarray:
        """Of observations `[..., *shape]`, what is kept."""
        return observation if self.age is None else observation[self._newest]

    def _keep_finals(self, slot: int, ended: np.ndarray, observation: np.ndarray) -> None:
        """Of the rows that ended at a slot, instead of those that it had when it was written before."""
        if self.written >= self.shape.slots:
            before = self.final[:, slot]
            self.finals.release(before[before != ON])
            self.final[:, slot] = ON
        if ended.size:
            numbers = self.finals.keep(self._newest_frame(observation))
            self.final[ended // self.num_envs, slot, ended % self.num_envs] = numbers

    def _cut(self, head: int) -> None:
        """The present observations become the last ones of the episodes under way."""
        member, env = np.nonzero(self.final[:, head - 1] == ON)
        self.final[member, head - 1, env] = self.finals.keep(self.observation[member, head, env])

    def _grow_older(self, head: int, following: int, step: Step) -> None:
        assert self.age is not None
        age = np.minimum(self.age[:, head] + 1, self.shape.stack - 1)
        age.reshape(-1)[step.ended] = 0
        self.age[:, following] = age
        self._check_padding(step.observation[step.ended])

    def _check_padding(self, first: np.ndarray) -> None:
        """Frames before an episode's first are not kept: they must be what `_stack` puts there."""
        if first[:, :-1].any():
            raise ValueError("the first observation of an episode must be one frame behind zeros to be kept unstacked")

    # Saving

    def steps(self, member: int) -> AppendOnlyRing:
        """All steps of one member; they are read when they are saved: before the next `write`."""
        first, slots = max(self.written - self.shape.slots + 1, 0), self.shape.slots
        segments = min(max(self._frames.nbytes // self.members // SEGMENT_BYTES, SEGMENTS), MOST_SEGMENTS)
        return AppendOnlyRing(first, self.written, slots, partial(self._steps, member), self._saved[member], segments)

    def state(self, member: int) -> dict[str, Any]:
        """What is in use of one member."""
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
        """One member goes on as it was; all members of a pack have written the same number of steps."""
        self.written = state["written"]
        self._saved[member] = dict(state["steps"].saved)
        self._forget(member)
        for first, arrays in state["steps"]:
            self._restore_steps(member, first, arrays)
        for name, array in state["present"].items():
            getattr(self, name)[member, self.written % self.shape.slots] = array
        if self.priorities is not None:
            self.priorities.restore(member, state["priorities"])

    def _steps(self, member: int, first: int, last: int) -> dict[str, np.ndarray]:
        """The steps `first` to `last`, without it, which lie side by side; of their ends, the places within them."""
        slots = slice(first % self.shape.slots, first % self.shape.slots + last - first)
        final = self.final[member, slots].reshape(-1)
        ended = np.flatnonzero(final != ON)
        ring = {name: getattr(self, name)[member, slots] for name in self._saved_arrays}
        return {**ring, "ended": ended, "final_observation": self.finals.rows[final[ended]]}

    def _restore_steps(self, member: int, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """A segment may begin with steps that the ring has forgotten."""
        old = max(self.written - self.shape.slots + 1 - first, 0)
        begin = (first + old) % self.shape.slots
        for name in self._saved_arrays:
            getattr(self, name)[member, begin : begin + len(arrays[name]) - old] = arrays[name][old:]
        kept = arrays["ended"] >= old * self.num_envs
        place = arrays["ended"][kept] + (begin - old) * self.num_envs
        self.final[member].reshape(-1)[place] = self.finals.keep(arrays["final_observation"][kept])

    def _forget(self, member: int) -> None:
        final = self.final[member]
        self.finals.release(final[final != ON])
        self.final[member] = ON

    @property
    def _saved_arrays(self) -> list[str]:
        return [name for name in self.shape.arrays() if name != "final"]
