"""Results: scores, curves and provenance of sessions, and the compact file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from rldsl.report.result import MOST_POINTS, SessionResult, read_result, read_results, thinned, write_result
from rldsl.report.run_result import result_of
from rldsl.store.errors import StoreError
from tests.report.finished import COMPUTE, Points, cartpole_plan, finish, result_of_curves, rising


def flat(value: float, points: int = 10) -> Points:
    return [(frame * 100, value) for frame in range(1, points + 1)]


def test_the_score_is_the_mean_over_seeds_of_the_last_hundred_log_points(tmp_path: Path) -> None:
    first = [(frame, 0.0 if frame <= 50 else 10.0) for frame in range(1, 151)]
    result = result_of_curves(tmp_path, first, flat(30.0))
    assert result.scores == [10.0, 30.0]
    assert result.score == 20.0
    assert (result.target, result.metric, result.experiment) == (450.0, "episode_return_ma", "cartpole/ppo")
    assert [one.seconds for one in result.sessions] == [1.5, 10.0]


def test_speed_is_the_median_over_seeds(tmp_path: Path) -> None:
    assert result_of_curves(tmp_path, flat(1.0), flat(1.0, 20)).frames_per_second == 100.0


@pytest.mark.parametrize("points", [[(100, None), (200, None)], []])
def test_a_session_that_ended_no_episode_has_no_score(tmp_path: Path, points: Points) -> None:
    result = result_of_curves(tmp_path, points, flat(30.0))
    assert [one.score for one in result.sessions] == [None, 30.0]
    assert math.isnan(result.score)
    assert "NaN" not in json.dumps(result.data())


def test_a_session_has_the_kernels_it_ended_with(tmp_path: Path) -> None:
    (directory,) = finish(tmp_path, cartpole_plan(1), [rising()])
    directory.journal.append("compute", kernels="avx512")
    assert result_of([directory]).sessions[0].compute == [{**COMPUTE, "kernels": "avx512"}]
    directory.journal.append("started", **COMPUTE)
    assert len(result_of([directory]).sessions[0].compute or ()) == 2


def test_a_result_names_neither_hosts_nor_paths_nor_unrelated_packages(tmp_path: Path) -> None:
    text = json.dumps(result_of_curves(tmp_path, rising()).data())
    assert "0123456789abcdef" in text and "a processor" in text
    assert not any(word in text for word in ("secret-host", "/home", "unrelated"))


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = result_of_curves(tmp_path / "runs", rising(100.0), [(50, None), *rising(200.0)[1:]])
    path = write_result(tmp_path / "results" / "classic", result)
    assert path.name == "cartpole-ppo.json"
    (read,) = read_results(tmp_path / "results")
    assert read.data() == result.data()
    assert not read.damage
    assert read.curve is not None and read.curve.frame[0] == 100, "both seeds have a return from there on"
    assert read.parsed_spec().id == result.trial


def test_a_file_that_was_changed_is_noticed(tmp_path: Path) -> None:
    path = write_result(tmp_path, result_of_curves(tmp_path / "runs", rising()))
    path.write_text(path.read_text().replace('"score": 100.0', '"score": 120.0'))
    assert read_result(path).damage == ("the file was changed: its digest does not fit it",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "rldsl.result"}', '{"format": "other"}'])
def test_a_file_that_is_no_result_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"x\.json is (damaged|not a result)"):
        read_result(path)


def test_a_session_of_a_long_training_is_below_thirty_kilobytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = [(frame * 100_000, float(rng.normal(-1e4, 1e3))) for frame in range(1, 2001)]
    path = write_result(tmp_path, result_of_curves(tmp_path / "runs", points))
    assert path.stat().st_size < 30_000
    (session,) = read_result(path).sessions
    assert session.curve is not None and session.curve.frame.size == MOST_POINTS
    assert session.score == pytest.approx(np.mean([value for _, value in points[-100:]]), rel=1e-6)
    assert session.curve.value[-100:].mean() == pytest.approx(session.score, rel=1e-6)


def test_a_thinned_curve_keeps_its_first_and_last_points(tmp_path: Path) -> None:
    (session,) = result_of_curves(tmp_path, [(frame, float(frame)) for frame in range(1, 301)]).sessions
    assert isinstance(session, SessionResult) and session.curve is not None
    curve = thinned(session.curve, most=120, keep_last=100)
    assert curve.frame.size == 120
    assert curve.frame[0] == 1 and curve.frame[-100:].tolist() == list(range(201, 301))
