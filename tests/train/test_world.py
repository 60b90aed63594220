"""The world of a pack and its recorders: when a log point is due, what it holds, and what is restored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl import Agent, Atari, Environment, Random
from rldsl.agents.base import AgentContext
from rldsl.agents.random import RandomAgent
from rldsl.envs.contract import Discrete, Spaces
from rldsl.envs.make import classic
from rldsl.spec.budget import Budget
from rldsl.spec.implementation import implementation
from rldsl.store.metrics import read_metrics
from rldsl.store.session_dir import SessionDir
from rldsl.train.recorder import Recorder
from rldsl.train.world import PackWorld
from tests.agents.tiny import Bandit, Chain, Endless
from tests.project import rows, work
from tests.train.packs import CARTPOLE, NORMALIZED, PENDULUM, curve, session, train

AGENT = RandomAgent(AgentContext([Random()], [0], Spaces((1,), np.dtype(np.float32), Discrete(2)), 1, frames=1))
"""An agent without metrics."""


RECORD = {"trial_id": "0", "trial": {"agent": {"kind": "bandit"}, "env": {}, "budget": {"frames": 4}}}
"""What the TensorBoard events take from the record of a session."""


def recorder(path: Path, columns: tuple[str, ...] = ()) -> Recorder:
    return Recorder(SessionDir.create(path, "env/agent-0/seed-0", RECORD, ""), columns, earlier_seconds=5.0)


@pytest.mark.parametrize(
    ("num_envs", "log_every", "frames", "expected"),
    [
        (1, 10, 30, [10, 20, 30]),
        (3, 10, 50, [12, 21, 30, 42, 51]),
        (8, 3, 24, [8, 16, 24]),
        (5, 20, 55, [20, 40, 55]),
        (4, 1000, 20, [20]),
        (7, 10, 10, [14]),
    ],
)
def test_log_points_are_at_the_first_frame_that_reaches_them_and_at_the_last(
    num_envs: int, log_every: int, frames: int, expected: list[int], tmp_path: Path
) -> None:
    env = CARTPOLE.with_(num_envs=num_envs)
    pack = train(tmp_path, session(Random(), env, frames=frames, log_every=log_every))
    assert [int(row["frame"]) for row in rows(pack.directories[0].path)] == expected


@pytest.mark.parametrize(
    ("agent", "env", "total", "length"),
    [
        (Random(), Chain(num_envs=3), 1.0, 5.0),
        (Random(), Endless(num_envs=3), 2.0, 3.0),
        (NORMALIZED.with_(minibatch=12, rollout=12), Endless(num_envs=3), 2.0, 3.0),
    ],
    ids=["ended", "cut", "normalised"],
)
def test_returns_and_lengths_are_those_of_the_task_itself(
    agent: Agent, env: Environment, total: float, length: float, tmp_path: Path
) -> None:
    pack = train(tmp_path, session(agent, env, frames=180, log_every=36))
    points = curve(pack.directories[0].path)
    assert set(points["episode_return"]) == {total} and set(points["length"]) == {length}
    steps = points["frame"] / 3
    np.testing.assert_array_equal(points["episodes"], 3 * (steps // length))


def test_every_row_counts_for_its_own_member(tmp_path: Path) -> None:
    """Two members of two rows each; what they do differs, and so does what they get."""
    recorders = [recorder(tmp_path / name) for name in "ab"]
    world = PackWorld(
        implementation(Bandit())(Bandit(), 4, 1), 2, Budget(4, log_every=4), AGENT, recorders, [True, True]
    )
    world.begin([0, 1])
    assert not world.exhausted
    for actions in ([0, 0, 1, 1], [0, 1, 1, 1]):
        world.step(np.array(actions))
    assert world.exhausted and world.frame == 4
    assert [one.episodes for one in recorders] == [4, 4]
    assert list(recorders[0].returns) == [0.2, 0.2, 0.2, 1.0] and list(recorders[1].returns) == [1.0] * 4
    for one in recorders:
        one.write_log_points(0, {})
    assert [read_metrics(one.metrics.path)["episode_return"] for one in recorders] == [[pytest.approx(0.4)], [1.0]]


def test_a_member_that_is_not_active_is_not_logged(tmp_path: Path) -> None:
    recorders = [recorder(tmp_path / name) for name in "ab"]
    world = PackWorld(
        implementation(Bandit())(Bandit(), 2, 1), 1, Budget(2, log_every=1), AGENT, recorders, [True, False]
    )
    world.begin([0, 1])
    world.step(np.array([1, 1]))
    for one in recorders:
        one.write_log_points(0, {})
    assert [len(read_metrics(one.metrics.path)["frame"]) for one in recorders] == [1, 0]


def test_an_episode_that_is_under_way_survives(tmp_path: Path) -> None:
    worlds = []
    for name in ("one", "two"):
        world = PackWorld(
            classic(PENDULUM, 2, threads=1), 2, Budget(10_000), AGENT, [recorder(tmp_path / name)], [True]
        )
        world.begin([0])
        worlds.append(world)
    one, other = worlds
    actions = np.random.default_rng(0).uniform(-1, 1, (260, 2, 1))
    for action in actions[:130]:
        one.step(action)
    other.restore(0, one.state(0), one.frame)
    for action in actions[130:]:
        ours, expected = other.step(action), one.step(action)
        np.testing.assert_array_equal(ours.observation, expected.observation)
    assert other.frame == one.frame
    assert other.recorders[0].state() == one.recorders[0].state()
    assert one.recorders[0].episodes == 2


def test_a_game_is_scored_whole_and_raw_while_lives_and_signs_are_learned_from(tmp_path: Path) -> None:
    """Breakout, with a ball served as soon as one is lost and the paddle in a corner or where it began."""
    env, one = Atari("Breakout", num_envs=2, frame_skip=8), recorder(tmp_path)
    world = PackWorld(implementation(env)(env, 2, 1), 2, Budget(10_000), AGENT, [one], [True])
    world.begin([0])
    lessons = []
    while not one.episodes:
        lessons.append(world.step(np.array([1, 2])))
    first = int(lessons[-1].ended[0])
    rewards, ends = (np.array([getattr(step, name)[first] for step in lessons]) for name in ("reward", "terminated"))
    assert ends.sum() == 5 and ends[-1]
    assert set(rewards) <= {0.0, 1.0} and one.returns[0] >= rewards.sum() and one.lengths[0] == len(lessons)
    world.envs.close()


def test_moving_averages_are_over_100_episodes_and_100_log_points(tmp_path: Path) -> None:
    one = recorder(tmp_path, ("loss",))
    returns = [float(number**2 % 37) for number in range(260)]
    averages: list[float] = []
    one.take_log_point(1, {"loss": 0.5})
    for number, total in enumerate(returns):
        one.add_episode(total, number)
        averages.append(float(np.mean(returns[max(0, number - 99) : number + 1])))
        one.take_log_point(2 + number, {"loss": 0.5})
    one.write_log_points(0, {})
    metrics = read_metrics(one.metrics.path)
    assert (metrics["episode_return"][0], metrics["episode_return_ma"][0], metrics["episodes"][0]) == (None, None, 0)
    np.testing.assert_allclose(metrics["episode_return"][1:], averages)
    expected = [np.mean(averages[max(0, number - 99) : number + 1]) for number in range(260)]
    np.testing.assert_allclose(metrics["episode_return_ma"][1:], expected)
    assert metrics["length"][-1] == np.mean(range(160, 260))
    assert metrics["episodes"][-1] == 260 and metrics["loss"][-1] == 0.5
    assert all(seconds >= 5.0 for seconds in metrics["seconds"]), "the seconds of earlier processes count"


def test_a_record_that_goes_on_says_what_one_that_never_stopped_says(tmp_path: Path) -> None:
    whole, first, second = (recorder(tmp_path / name) for name in ("whole", "first", "second"))
    random = np.random.default_rng(0)
    for point in range(1, 301):
        if point == 150:
            second.restore(first.state(), point - 1)
        total = float(random.normal())
        for one in (whole, first if point < 150 else second):
            one.add_episode(total, point)
            one.take_log_point(point, {})
            one.write_log_points(0, {})
    paths = [one.metrics.path.parent for one in (whole, first, second)]
    assert work(paths[1]) + work(paths[2]) == work(paths[0])
    assert (second.best, second.episodes) == (whole.best, whole.episodes)


def test_a_point_is_an_improvement_only_if_it_beats_all_before(tmp_path: Path) -> None:
    one, improved = recorder(tmp_path), []
    for frame, total in enumerate([1.0, 3.0, 0.0, 2.0, 30.0], start=1):
        one.add_episode(total, 1)
        one.improved = False
        one.take_log_point(frame, {})
        improved.append(one.improved)
    assert improved == [True, True, False, False, True]  # means 1, 2, 1.33, 1.5, 7.2
    assert one.best == pytest.approx(7.2)


def test_tensorboard_has_the_same_points(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    pack = train(tmp_path, session(Random(), frames=512, log_every=128))
    path = pack.directories[0].path
    events = EventAccumulator(str(pack.directories[0].tensorboard)).Reload()
    assert [one.step for one in events.Scalars("charts/episode_return")] == [128, 256, 384, 512]
    np.testing.assert_allclose(
        [one.value for one in events.Scalars("charts/episode_return")], curve(path)["episode_return"], rtol=1e-6
    )
