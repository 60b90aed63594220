"""Atari games: starts, lives, scores, actions and endings, and what of them is learned from."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest

from rldsl import Atari, SpecError
from rldsl.envs import Discrete, EnvError, Step
from rldsl.envs.atari import AtariEnv
from rldsl.spec.catalog import AtariId

PLAIN = {"sticky": 0.0, "noop_max": 0}
"""No randomness: no sticky actions, no no-op starts."""
IDLE, FIRE = 0, 1


@contextmanager
def rows_of(spec: Atari, rows: int = 1, threads: int = 1) -> Iterator[AtariEnv]:
    with closing(AtariEnv(spec, rows, threads)) as env:
        yield env


def played(env: AtariEnv, actions: Any, seeds: list[int] | None = None) -> list[Step]:
    """Every step of one game a row; actions `[T]` are taken in all rows."""
    env.reset(seeds or list(range(env.rows)))
    return [env.step(np.broadcast_to(action, env.rows)) for action in actions]


def random_actions(env: AtariEnv, steps: int) -> np.ndarray:
    return np.random.default_rng(0).integers(env.spaces.action.n, size=(steps, env.rows))


@pytest.mark.parametrize("game", get_args(AtariId))
def test_every_game_starts_and_steps(game: Any) -> None:
    with rows_of(Atari(game)) as env:
        assert env.reset([3]).shape == (1, 4, 84, 84)
        first, second = (env.step(action).observation for action in random_actions(env, 2))
        assert first.dtype == np.uint8 and np.array_equal(second[:, :3], first[:, 1:])


def test_the_catalog_has_every_game_that_is_installed() -> None:
    from ale_py import roms

    installed = {rom.title().replace("_", "") for rom in roms.get_all_rom_ids()}
    assert len(get_args(AtariId)) == 104 and installed >= set(get_args(AtariId))


def test_a_wrong_name_gets_the_nearest() -> None:
    with pytest.raises(SpecError, match="Pong"):
        Atari("Pnog")  # type: ignore[arg-type]


@pytest.mark.parametrize(("sticky", "equal"), [(0.0, True), (0.25, False)])
def test_only_sticky_actions_make_games_of_other_seeds_differ(sticky: float, equal: bool) -> None:
    with rows_of(Atari("Breakout", sticky=sticky, noop_max=0), 2) as env:
        actions = np.random.default_rng(0).integers(4, size=60)
        assert all(np.array_equal(*step.observation) for step in played(env, actions)) is equal


def test_idle_frames_at_the_start_make_games_of_other_seeds_differ() -> None:
    different = []
    for noop_max in (0, 30):
        with rows_of(Atari("Breakout", sticky=0.0, noop_max=noop_max), 4) as env:
            step = played(env, [IDLE] * 12)[-1]
            different.append(len({screens.tobytes() for screens in step.observation}))
    assert different[0] == 1 and different[1] > 1


def test_a_game_is_the_same_on_any_number_of_threads_and_after_another_game() -> None:
    spec, seeds = Atari("Pong"), [5, 6, 7]
    with rows_of(spec, 3) as one, rows_of(spec, 3, threads=2) as other:
        actions = random_actions(one, 40)
        played(other, actions[::-1], [1, 2, 3])
        for step, again in zip(played(one, actions, seeds), played(other, actions, seeds), strict=True):
            np.testing.assert_array_equal(step.observation, again.observation)
            np.testing.assert_array_equal(step.reward, again.reward)


def test_a_lost_life_ends_the_episode_for_learning_and_the_game_goes_on() -> None:
    """Five balls of Breakout, served and missed: four lives are lost, the fifth ends the game."""
    with rows_of(Atari("Breakout", **PLAIN)) as env:
        steps = played(env, [FIRE] * 150)
    over = next(at for at, step in enumerate(steps) if step.ended.size)
    life_lost = [at for at, step in enumerate(steps[: over + 1]) if step.life_lost is not None and step.life_lost[0]]
    assert len(life_lost) == 4 and over not in life_lost
    for at in life_lost:
        step = steps[at]
        assert not step.terminated[0] and not step.truncated[0] and not step.ended.size
        assert step.to_learn().terminated[0]
        np.testing.assert_array_equal(steps[at + 1].observation[0, :3], step.observation[0, 1:])
    assert steps[over].terminated[0] and steps[over].to_learn().terminated[0]


def test_life_loss_can_be_left_alone() -> None:
    with rows_of(Atari("Breakout", life_loss=False, **PLAIN)) as env:
        steps = played(env, [FIRE] * 150)
    assert all(step.life_lost is None for step in steps)
    assert sum(step.to_learn().terminated[0] for step in steps) == sum(step.ended.size for step in steps) > 0


@pytest.mark.parametrize(("fire_reset", "loses"), [(True, True), (False, False)])
def test_fire_at_the_start_serves_the_ball(fire_reset: bool, loses: bool) -> None:
    with rows_of(Atari("Breakout", fire_reset=fire_reset, **PLAIN)) as env:
        steps = played(env, [IDLE] * 60)
    assert any(step.life_lost is not None and step.life_lost[0] for step in steps) is loses


def test_the_score_is_raw_and_the_learning_reward_its_sign() -> None:
    with rows_of(Atari("SpaceInvaders"), 2) as env:
        steps = played(env, random_actions(env, 100))
    scores = np.concatenate([step.reward for step in steps])
    lessons = np.concatenate([step.to_learn().reward for step in steps])
    assert scores.max() >= 5 and scores.dtype == lessons.dtype == np.float64
    np.testing.assert_array_equal(lessons, np.sign(scores))


def test_the_raw_score_can_be_learned_from() -> None:
    with rows_of(Atari("SpaceInvaders", clip_rewards=False)) as env:
        steps = played(env, random_actions(env, 10))
    assert all(step.to_learn().reward is step.reward for step in steps)


@pytest.mark.parametrize(("game", "own"), [("Pong", 6), ("Breakout", 4), ("Freeway", 3), ("Boxing", 18)])
def test_the_actions_are_the_games_own_or_all_18(game: Any, own: int) -> None:
    with rows_of(Atari(game)) as some, rows_of(Atari(game, full_actions=True)) as every:
        assert some.spaces.action == Discrete(own) and every.spaces.action == Discrete(18)


@pytest.mark.parametrize("action", [-1, 6])
def test_an_action_that_the_game_does_not_have_is_refused(action: int) -> None:
    with rows_of(Atari("Pong"), 2) as env:
        env.reset([0, 1])
        with pytest.raises(EnvError, match="actions of Pong are 0 to 5"):
            env.step(np.array([0, action]))


@pytest.mark.parametrize(("frame_skip", "steps"), [(4, 10), (2, 20)])
def test_a_game_is_cut_after_so_many_emulator_frames(frame_skip: int, steps: int) -> None:
    with rows_of(Atari("Pong", frame_skip=frame_skip, max_frames=40), 2) as env:
        ends = [at for at, step in enumerate(played(env, random_actions(env, 2 * steps)), 1) if step.ended.size]
        assert ends == [steps, 2 * steps]
        cut = played(env, random_actions(env, steps))[-1]
        assert cut.truncated.all() and not cut.terminated.any()


@pytest.mark.parametrize("spec", [Atari("Breakout"), Atari("Pong", max_frames=80)], ids=["over", "cut"])
def test_a_final_observation_belongs_to_the_game_that_ended(spec: Atari) -> None:
    """Its older screens are those that were seen last, and the next game begins with none."""
    endings = 0
    with rows_of(spec, 2) as env:
        steps = played(env, [FIRE] * 160)
    for before, step in pairwise(steps):
        np.testing.assert_array_equal(step.final_observation[:, :-1], before.observation[step.ended, 1:])
        assert not step.observation[step.ended, :-1].any() and step.final_observation.shape[0] == step.ended.size
        endings += step.ended.size
    assert endings >= 2


@pytest.mark.parametrize("stack", [1, 2])
def test_an_observation_has_as_many_screens_as_the_spec_says(stack: int) -> None:
    with rows_of(Atari("Pong", stack=stack)) as env:
        assert env.reset([0]).shape == (1, *env.spaces.observation_shape) == (1, stack, 84, 84)


def test_a_state_cannot_be_saved_and_that_is_said() -> None:
    with rows_of(Atari("Pong")) as env:
        env.reset([0])
        assert not env.exact_resume
        with pytest.raises(EnvError, match="cannot be resumed exactly"):
            env.state()
