"""The replay against a plain list of transitions that does the same, and the memory that it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl.envs import Step
from rldsl.envs.make import atari
from rldsl.memory.replay import ReplayBuffer
from rldsl.memory.replay_size import ReplayShape
from rldsl.spec.environment import Atari
from rldsl.store import load_checkpoint, save_checkpoint

GAMMA = (0.9, 0.5, 0.99)


@dataclass
class Transition:
    observation: np.ndarray
    action: np.ndarray
    reward: float
    terminated: bool
    ended: bool
    next_observation: np.ndarray


@dataclass
class Game:
    """Rows whose episodes end, are cut and lose lives at random; what happened is kept in plain lists."""

    shape: ReplayShape
    random: np.random.Generator
    rows: list[list[Transition]] = field(default_factory=list)
    observation: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [[] for _ in range(self.shape.members * self.shape.num_envs)]
        self.observation = self.begin()

    def begin(self) -> np.ndarray:
        self.observation = np.stack([self._first() for _ in self.rows])
        return self.observation

    def _seen(self) -> np.ndarray:
        return self.random.integers(1, 255, self.shape.frame).astype(self.shape.dtype)

    def _first(self) -> np.ndarray:
        if self.shape.stack == 1:
            return self._seen()
        return np.concatenate((np.zeros((self.shape.stack - 1, *self.shape.frame), self.shape.dtype), [self._seen()]))

    def _following(self, observation: np.ndarray) -> np.ndarray:
        return self._seen() if self.shape.stack == 1 else np.concatenate((observation[1:], [self._seen()]))

    def step(self) -> tuple[np.ndarray, Step]:
        rows = len(self.rows)
        terminated, truncated, lost = self.random.random((3, rows)) < 0.15
        ended = np.flatnonzero(terminated | truncated)
        terminated = terminated | lost
        reward = self.random.integers(-5, 5, rows).astype(np.float64)
        action = self.random.integers(0, 9, (rows, *self.shape.action))
        after = np.stack([self._following(one) for one in self.observation])
        final = after[ended].copy()
        for row in ended:
            after[row] = self._first()
        step = Step(after, reward, terminated, truncated, ended, final)
        self.note(action, step)
        return action, step

    def note(self, action: np.ndarray, step: Step) -> None:
        """Keeps what was done at the present observations, and what came of it."""
        following = step.observation.copy()
        following[step.ended] = step.final_observation
        for row, past in enumerate(self.rows):
            what = (float(step.reward[row]), bool(step.terminated[row]), row in step.ended, following[row])
            past.append(Transition(self.observation[row], action[row], *what))
        self.observation = step.observation.copy()

    def cut(self) -> None:
        """Every episode is left where it is, and begins anew."""
        for past in self.rows:
            if past:
                past[-1].ended = True
        self.begin()


def made(shape: ReplayShape, n: int = 1, alpha: float = 0.6) -> ReplayBuffer:
    members = shape.members
    return ReplayBuffer(shape, GAMMA[:members], [n] * members, [alpha] * members if shape.prioritized else None)


def played(replay: ReplayBuffer, game: Game, steps: int) -> None:
    if not replay.written:
        replay.begin(game.observation)
    for _ in range(steps):
        replay.write(*game.step())


def rngs(members: int, seed: int = 0) -> list[np.random.Generator]:
    return [np.random.default_rng((seed, member)) for member in range(members)]


def expected(past: list[Transition], at: int, n: int, gamma: float) -> tuple[float, float, Transition]:
    """The n-step return from a step, the discount behind it, and its last transition."""
    total, discount = 0.0, 1.0
    for one in past[at : at + n]:
        total += discount * one.reward
        discount *= gamma
        if one.terminated or one.ended:
            break
    return total, discount, one


def check(replay: ReplayBuffer, game: Game, batch: dict[str, np.ndarray], n: int) -> None:
    shape = replay.shape
    for where in np.ndindex(batch["index"].shape):
        member, place = where[1], int(batch["index"][where])
        past = game.rows[member * shape.num_envs + place % shape.num_envs]
        slot = place // shape.num_envs
        at = max(step for step in range(len(past)) if step % shape.slots == slot)
        assert len(past) - shape.kept <= at
        total, discount, last = expected(past, at, n, GAMMA[member])
        np.testing.assert_array_equal(batch["observation"][where], past[at].observation)
        np.testing.assert_array_equal(batch["action"][where], past[at].action)
        np.testing.assert_array_equal(batch["next_observation"][where], last.next_observation)
        np.testing.assert_allclose(batch["reward"][where], total, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(batch["discount"][where], discount, rtol=1e-6)
        assert batch["terminated"][where] == last.terminated


shapes = st.builds(
    ReplayShape,
    capacity=st.integers(3, 30),
    members=st.integers(1, 3),
    num_envs=st.integers(1, 3),
    observation=st.just((2,)),
    action=st.sampled_from([(), (2,)]),
    prioritized=st.booleans(),
) | st.builds(
    ReplayShape,
    capacity=st.integers(3, 30),
    members=st.integers(1, 2),
    num_envs=st.integers(1, 3),
    observation=st.sampled_from([(3, 2, 2), (3, 4)]),
    dtype=st.just("uint8"),
    stack=st.just(3),
    prioritized=st.booleans(),
)


@settings(deadline=None, max_examples=60)
@given(shapes, st.integers(1, 70), st.integers(1, 4), st.integers(0, 10**6), st.booleans())
def test_what_is_drawn_is_what_was_seen(shape: ReplayShape, steps: int, n: int, seed: int, newest: bool) -> None:
    replay, game = made(shape, n), Game(shape, np.random.default_rng(seed))
    for count in (steps, 1):
        played(replay, game, count)
        batch = replay.sample(2, 8, rngs(shape.members, seed), include_newest=newest)
        check(replay, game, batch, n)
        assert {array.shape[:3] for array in batch.values()} == {(2, shape.members, 8)}


@settings(deadline=None, max_examples=30)
@given(shapes, st.integers(0, 40), st.integers(1, 40), st.integers(1, 3), st.integers(0, 10**6))
def test_where_environments_could_not_go_on_episodes_are_cut(
    shape: ReplayShape, before: int, after: int, n: int, seed: int
) -> None:
    replay, game = made(shape, n), Game(shape, np.random.default_rng(seed))
    played(replay, game, before)
    game.cut()
    replay.begin(game.observation)
    if before:
        check(replay, game, replay.sample(1, 20, rngs(shape.members)), n)
    played(replay, game, after)
    check(replay, game, replay.sample(1, 20, rngs(shape.members)), n)


@pytest.mark.parametrize("prioritized", [False, True])
def test_every_transition_that_is_kept_is_drawn_and_alike_often(prioritized: bool) -> None:
    shape = ReplayShape(24, 2, 3, (2,), prioritized=prioritized)
    for steps in (5, 8, 21):
        replay = made(shape)
        played(replay, Game(shape, np.random.default_rng(1)), steps)
        index = replay.sample(10, 2400, rngs(2))["index"]
        for member in range(2):
            drawn = np.bincount(index[:, member].reshape(-1), minlength=shape.places)
            kept = min(steps, 8) * 3
            assert (drawn > 0).sum() == kept == replay.count
            np.testing.assert_allclose(drawn[drawn > 0] / 24_000, 1 / kept, rtol=0.15)


def test_several_batches_in_one_call_are_those_of_several_calls() -> None:
    shape = ReplayShape(50, 2, 2, (2,))
    replay = made(shape)
    played(replay, Game(shape, np.random.default_rng(0)), 40)
    together, one_by_one = rngs(2), rngs(2)
    batch = replay.sample(3, 5, together)
    for k in range(3):
        np.testing.assert_array_equal(batch["index"][k], replay.sample(1, 5, one_by_one)["index"][0])


def test_out_is_filled_with_what_would_be_returned() -> None:
    for shape in (ReplayShape(50, 2, 2, (2,), prioritized=True), ReplayShape(50, 2, 2, (3, 4), dtype="uint8", stack=3)):
        replay = made(shape, n=2)
        played(replay, Game(shape, np.random.default_rng(0)), 40)
        out = replay.allocate(2, 5)
        for seed in range(2):
            expected = replay.sample(2, 5, rngs(2, seed))
            assert replay.sample(2, 5, rngs(2, seed), out=out) is out
            for name, array in expected.items():
                np.testing.assert_array_equal(out[name], array)


def test_a_member_draws_the_same_alone_as_among_others() -> None:
    shape, alone = (ReplayShape(30, members, 2, (2,), prioritized=True) for members in (2, 1))
    pair, single = made(shape), made(alone)
    game = Game(shape, np.random.default_rng(0))
    pair.begin(game.observation)
    single.begin(game.observation[:2])
    for _ in range(40):
        action, step = game.step()
        pair.write(action, step)
        ended = step.ended[step.ended < 2]
        mine = (part[:2] for part in (step.observation, step.reward, step.terminated, step.truncated))
        single.write(action[:2], Step(*mine, ended, step.final_observation[: len(ended)]))
    for _ in range(3):
        index = pair.sample(1, 6, rngs(2))["index"][0]
        np.testing.assert_array_equal(index[:1], single.sample(1, 6, rngs(1))["index"][0])
        error = np.arange(12.0).reshape(2, 6)
        pair.prioritize(index, error)
        single.prioritize(index[:1], error[:1])


def test_the_newest_step_is_in_every_batch() -> None:
    shape = ReplayShape(40, 1, 3, (2,))
    replay, game = made(shape), Game(shape, np.random.default_rng(0))
    for steps in (1, 20):
        played(replay, game, steps)
        batch = replay.sample(4, 5, rngs(1), include_newest=True)
        newest = np.stack([past[-1].observation for past in game.rows])
        for k in range(4):
            np.testing.assert_array_equal(batch["observation"][k, 0, :3], newest)
        few = replay.sample(1, 2, rngs(1), include_newest=True)
        np.testing.assert_array_equal(few["observation"][0, 0], newest[1:])


def test_the_number_of_steps_is_each_members_own() -> None:
    shape = ReplayShape(50, 2, 1, (2,))
    replay = ReplayBuffer(shape, [0.5, 0.5], [1, 3])
    seen = np.zeros((2, 2), np.float32)
    no, none = np.zeros(2, bool), np.zeros(0, np.int64)
    replay.begin(seen)
    for _ in range(5):
        replay.write(np.zeros(2), Step(seen, np.ones(2), no, no, none, seen[:0]))
    batch = replay.sample(1, 200, rngs(2))
    assert set(batch["reward"][0, 0]) == {1.0}
    assert set(batch["reward"][0, 1]) == {1.75, 1.5, 1.0}  # 1 + .5 + .25, and fewer beside the newest step
    assert set(batch["discount"][0, 1]) == {0.125, 0.25, 0.5}


def test_what_surprised_is_drawn_more_often_and_weighs_less() -> None:
    shape = ReplayShape(4, 1, 1, (2,), prioritized=True)
    replay = made(shape, alpha=0.5)
    played(replay, Game(shape, np.random.default_rng(0)), 4)
    replay.prioritize(np.array([[0, 1, 2, 3]]), np.array([[1.0, -4.0, 9.0, -16.0]]))  # priorities 1, 2, 3, 4
    batch = replay.sample(1, 10_000, rngs(1), beta=np.array([0.5]))
    index, weight = batch["index"][0, 0], batch["weight"][0, 0]
    np.testing.assert_allclose(np.bincount(index)[:4] / 10_000, [0.1, 0.2, 0.3, 0.4], atol=0.01)
    np.testing.assert_allclose(weight, 1 / np.sqrt(index + 1), rtol=1e-5)
    assert weight.dtype == np.float32


def test_what_is_new_is_as_likely_as_the_likeliest() -> None:
    shape = ReplayShape(20, 1, 2, (2,), prioritized=True)
    replay, game = made(shape, alpha=1.0), Game(shape, np.random.default_rng(0))
    played(replay, game, 3)
    replay.prioritize(np.array([[2]]), np.array([[41.0]]))
    replay.prioritize(np.array([[2]]), np.array([[1.0]]))
    played(replay, game, 1)
    assert replay.priorities is not None
    priority = replay.priorities.tree.get(np.array([[0, 2, 6, 7]]))
    np.testing.assert_allclose(priority, [[1.0, 1.0, 41.0, 41.0]], rtol=1e-5)


@settings(deadline=None, max_examples=30)
@given(shapes, st.integers(0, 70), st.integers(1, 20), st.integers(0, 10**6))
def test_restored_it_goes_on_as_it_was(shape: ReplayShape, before: int, after: int, seed: int) -> None:
    replay, game = made(shape, 2), Game(shape, np.random.default_rng(seed))
    played(replay, game, before)
    other = made(shape, 2)
    played(other, Game(shape, np.random.default_rng(seed + 1)), 9)  # what it held before does not matter
    if before:
        disturb(replay, seed)
    for member in range(shape.members):
        other.restore(member, replay.state(member))
    for _ in range(after):
        if not replay.written:
            replay.begin(game.observation)
            other.begin(game.observation)
        one = game.step()
        replay.write(*one)
        other.write(*one)
    left, right = (one.sample(3, 7, rngs(shape.members)) for one in (replay, other))
    for name, array in left.items():
        np.testing.assert_array_equal(array, right[name])
    check(other, game, right, 2)


@settings(deadline=None, max_examples=12)
@given(shapes, st.lists(st.integers(0, 25), min_size=1, max_size=4), st.booleans(), st.integers(0, 10**6))
def test_every_checkpoint_gives_back_what_was_there(shape: ReplayShape, lives: list[int], cut: bool, seed: int) -> None:
    """Saved after so many steps each; every time, what is loaded goes on in its place."""
    replay, game = made(shape, 2), Game(shape, np.random.default_rng(seed))
    replay.begin(game.observation)
    with TemporaryDirectory() as name:
        for life, steps in enumerate([1, *lives]):
            played(replay, game, steps)
            disturb(replay, seed)
            replay = reloaded(replay, Path(name), life)
            if cut:
                game.cut()
                replay.begin(game.observation)
            check(replay, game, replay.sample(2, 9, rngs(shape.members)), 2)


def reloaded(replay: ReplayBuffer, directory: Path, frame: int) -> ReplayBuffer:
    """A new one, by way of the disk; both must draw the same."""
    other = made(replay.shape, 2)
    for member in range(replay.members):
        save_checkpoint(directory / str(member), frame, {"replay": replay.state(member)})
        loaded = load_checkpoint(directory / str(member))
        assert loaded is not None and loaded.damaged == []
        other.restore(member, loaded.state["replay"])
    left, right = (one.sample(2, 9, rngs(replay.members)) for one in (replay, other))
    for name, array in left.items():
        np.testing.assert_array_equal(array, right[name])
    return other


def test_a_checkpoint_writes_only_what_is_new(tmp_path: Path) -> None:
    shape = ReplayShape(16_000, 1, 2, (50,))
    replay, game = made(shape), Game(shape, np.random.default_rng(0))
    played(replay, game, 9000)
    save_checkpoint(tmp_path, 1, {"replay": replay.state(0)})
    played(replay, game, 100)
    save_checkpoint(tmp_path, 2, {"replay": replay.state(0)})
    files = [path for path in (tmp_path / "000000000002").iterdir() if path.stat().st_nlink == 1]
    shared = [path for path in (tmp_path / "000000000002").iterdir() if path.stat().st_nlink == 2]
    assert len(shared) >= 15
    whole = sum(path.stat().st_size for path in files + shared)
    assert sum(path.stat().st_size for path in files) < whole / 10
    on_disk = {path.stat().st_ino: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert sum(on_disk.values()) < 1.2 * whole


def test_saving_makes_no_copy(tmp_path: Path) -> None:
    """No array of a state that is large has memory of its own, but for the few last observations of episodes."""
    shape = ReplayShape(2000, 2, 2, (50,), prioritized=True)
    replay = made(shape)
    played(replay, Game(shape, np.random.default_rng(0)), 1500)
    state = replay.state(1)
    assert np.shares_memory(state["priorities"]["priority"], replay.priorities.tree.levels[0])  # type: ignore[union-attr]
    for _, arrays in state["steps"]:
        for name in ("observation", "action", "reward", "terminated"):
            assert np.shares_memory(arrays[name], getattr(replay, name)) and arrays[name].flags.c_contiguous


def disturb(replay: ReplayBuffer, seed: int) -> None:
    if replay.priorities is not None:
        index = replay.sample(1, 5, rngs(replay.members))["index"][0]
        replay.prioritize(index, np.random.default_rng(seed).normal(size=index.shape))


def test_real_games_are_stacked_as_they_were_seen() -> None:
    """Breakout: first stacks, lost lives and ends are the emulator's own."""
    envs = atari(Atari("Breakout", num_envs=4), 4, 1)
    shape = ReplayShape(1600, 1, 4, envs.spaces.observation_shape, dtype="uint8", stack=envs.spaces.stack)
    replay, game, random = made(shape, 3), Game(shape, np.random.default_rng(0)), np.random.default_rng(0)
    game.observation = envs.reset(range(4)).copy()
    replay.begin(game.observation)
    for _ in range(500):
        action = random.integers(envs.spaces.action.n, size=4)
        step = envs.step(action).to_learn()
        replay.write(action, step)
        game.note(action, step)
    envs.close()
    past = [one for row in game.rows for one in row]
    assert sum(one.ended for one in past) > 3 and sum(one.terminated and not one.ended for one in past) > 10
    check(replay, game, replay.sample(4, 100, rngs(1)), 3)


def test_nothing_can_be_drawn_from_nothing() -> None:
    replay = made(ReplayShape(8, 1, 2, (2,)))
    with pytest.raises(ValueError, match="nothing was written yet"):
        replay.sample(1, 4, rngs(1))


def test_stacks_that_begin_with_anything_but_zeros_are_refused() -> None:
    replay = made(ReplayShape(8, 1, 1, (3, 2, 2), dtype="uint8", stack=3))
    with pytest.raises(ValueError, match="must be one frame behind zeros"):
        replay.begin(np.ones((1, 3, 2, 2), np.uint8))


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold one step of 16 envs"):
        ReplayShape(8, 1, 16, (2,))
    with pytest.raises(ValueError, match="is no stack of 4 frames"):
        ReplayShape(8, 1, 1, (3, 84, 84), stack=4)


@settings(deadline=None, max_examples=30)
@given(shapes, st.integers(0, 60), st.integers(0, 10**6))
def test_the_announced_bytes_are_those_of_the_arrays(shape: ReplayShape, steps: int, seed: int) -> None:
    replay, game = made(shape), Game(shape, np.random.default_rng(seed))
    played(replay, game, steps)
    held = (replay.final != -1).sum()
    assert len(replay.finals.rows) - replay.finals.num_free == held
    assert replay.nbytes == shape.bytes(ends=len(replay.finals.rows))


def test_a_million_transitions_of_hopper_take_less_than_150_megabytes() -> None:
    shape = ReplayShape(1_000_000, 1, 16, (11,), action=(3,), prioritized=True)
    assert shape.bytes() < 80e6
    assert shape.bytes(ends=1_000_000) < 150e6  # if every single transition ended an episode
    assert made(shape).nbytes == shape.bytes()


def test_a_hundred_thousand_frames_of_atari_take_less_than_a_gigabyte() -> None:
    shape = ReplayShape(100_000, 1, 16, (4, 84, 84), dtype="uint8", stack=4)
    assert shape.bytes(ends=2000) < 0.75e9
    assert made(shape).nbytes == shape.bytes()
