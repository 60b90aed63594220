"""The audit: an undamaged result is accepted, and each property that is corrupted is a rejection of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rldsl.report.audit import audit, unverified
from rldsl.report.entry import Entry
from rldsl.report.result import Result, read_result, write_result
from rldsl.report.run_result import result_of
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.store.session_dir import SessionDir
from tests.report.finished import COMPUTE, PROVENANCE, cartpole_entry, cartpole_plan, finish, rising

SEEDS = 3


@pytest.fixture
def sessions(tmp_path: Path) -> list[SessionDir]:
    return finish(tmp_path / "runs", cartpole_plan(SEEDS), [rising(), rising(90.0), rising(110.0)])


@pytest.fixture
def entry() -> Entry:
    return cartpole_entry(SEEDS)


def test_an_undamaged_result_is_accepted(sessions: list[SessionDir], entry: Entry, tmp_path: Path) -> None:
    result = result_of(sessions)
    assert audit(result, entry) == []
    assert unverified(result) == []
    assert audit(read_result(write_result(tmp_path, result)), entry) == []


# What happens to the files of a session, and what the audit then says.


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def unfinished(one: SessionDir) -> None:
    edit(one.journal.path, lambda text: "\n".join(text.splitlines()[:-1]) + "\n")
    edit(one.metrics, lambda text: "\n".join(text.splitlines()[:81]) + "\n")


def ends_early(one: SessionDir) -> None:
    edit(one.metrics, lambda text: "\n".join(text.splitlines()[:151]) + "\n")


def every_second_log_point(one: SessionDir) -> None:
    header, *lines = one.metrics.read_text().splitlines()
    one.metrics.write_text("\n".join([header, *lines[1::2]]) + "\n")


def too_few_log_points(one: SessionDir) -> None:
    header, *lines = one.metrics.read_text().splitlines()
    one.metrics.write_text("\n".join([header, *lines[-99:]]) + "\n")


def no_episode(one: SessionDir) -> None:
    header, *lines = one.metrics.read_text().splitlines()
    one.metrics.write_text("\n".join([header, *(line.rpartition(",")[0] + "," for line in lines)]) + "\n")


def other_commit(one: SessionDir) -> None:
    code = {"sha": "fedcba9876543210", "dirty": False}
    (one.path / "provenance.json").write_text(json.dumps({**PROVENANCE, "code": code}))


def resumed_with_another_commit(one: SessionDir) -> None:
    code = {"sha": "fedcba9876543210", "dirty": False}
    (one.path / "provenance-2.json").write_text(json.dumps({**PROVENANCE, "code": code}))


def with_digest(one: SessionDir, digest: str, sha: str) -> None:
    code = {"sha": sha, "dirty": False, "digest": digest}
    (one.path / "provenance.json").write_text(json.dumps({**PROVENANCE, "code": code}))


def other_gymnasium(one: SessionDir) -> None:
    packages = {**PROVENANCE["packages"], "gymnasium": "0.29"}
    (one.path / "provenance.json").write_text(json.dumps({**PROVENANCE, "packages": packages}))


def uncommitted_changes(one: SessionDir) -> None:
    code = {**PROVENANCE["code"], "dirty": True}
    (one.path / "provenance.json").write_text(json.dumps({**PROVENANCE, "code": code}))


def no_repository(one: SessionDir) -> None:
    (one.path / "provenance.json").write_text(json.dumps({**PROVENANCE, "code": {"sha": None, "dirty": True}}))


def other_device(one: SessionDir) -> None:
    one.journal.append("compute", **{**COMPUTE, "device": "cuda:0"})


def other_kernels(one: SessionDir) -> None:
    one.journal.append("compute", **{**COMPUTE, "kernels": "avx512"})


def not_compiled(one: SessionDir) -> None:
    one.journal.append("compute", **{**COMPUTE, "compiled": False})


def garbage_in_the_journal(one: SessionDir) -> None:
    edit(one.journal.path, lambda text: f'{{"half": \n{text}')


def half_a_row(one: SessionDir) -> None:
    edit(one.metrics, lambda text: text.replace("\n500,", "\n500 ", 1))


def frames_go_back(one: SessionDir) -> None:
    edit(one.metrics, lambda text: text.replace("\n500,", "\n5000,", 1))


def nan_in_the_middle(one: SessionDir) -> None:
    edit(one.metrics, lambda text: text.replace("\n500,5.0,10.0\n", "\n500,5.0,nan\n", 1))


def no_provenance(one: SessionDir) -> None:
    (one.path / "provenance.json").unlink()


def changed_setting(one: SessionDir) -> None:
    edit_json(one.session, lambda record: record["trial"]["agent"].update(gamma=0.5))


def unreadable_settings(one: SessionDir) -> None:
    edit_json(one.session, lambda record: record["trial"]["agent"].update(gamma=2.0))


DAMAGES: list[tuple[Callable[[SessionDir], None], str]] = [
    (unfinished, "seed 0 has not finished training: it is at frame 4,000 of 10,000"),
    (ends_early, "the last log point of seed 0 is at frame 7,500 of 10,000"),
    (every_second_log_point, "the log points of seed 0 are 100 to 100 frames apart, not 50"),
    (too_few_log_points, "seed 0 has 99 log points with a return, and the score is the mean of the last 100"),
    (no_episode, "no episode ended with seed 0, so there is no score"),
    (other_commit, "it was computed with different code: 0123456789, fedcba9876"),
    (resumed_with_another_commit, "it was computed with different code: 0123456789, fedcba9876"),
    (other_gymnasium, "it was computed with different versions of gymnasium: 0.29, 1.2.0"),
    (uncommitted_changes, "its code had changes that were not committed; commit them before training"),
    (no_repository, "its code was not committed to a git repository; commit the file before training"),
    (other_device, "it was computed with different devices: cpu, cuda:0"),
    (other_kernels, "it was computed with different kernels: avx512, torch"),
    (not_compiled, "some seeds were computed with compiled updates and some without"),
    (garbage_in_the_journal, "the journal of seed 0 has 1 line that cannot be read"),
    (half_a_row, "metrics.csv of seed 0 has 1 line that cannot be read"),
    (frames_go_back, "the frames in metrics.csv of seed 0 do not increase"),
    (nan_in_the_middle, "metrics.csv of seed 0 has log points without a finite return after its first episode"),
    (no_provenance, "seed 0 has no provenance.json"),
    (unreadable_settings, "seed 0 cannot be used: "),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_damaged_session_is_rejected(
    sessions: list[SessionDir], entry: Entry, damage: Callable[[SessionDir], None], sentence: str
) -> None:
    damage(sessions[0])
    rejections = audit(result_of(sessions), entry)
    assert any(one.startswith(sentence) for one in rejections), rejections


def test_a_setting_changed_in_a_session_is_noticed(sessions: list[SessionDir], entry: Entry) -> None:
    changed_setting(sessions[0])
    (problem,) = audit(result_of(sessions), entry)[:1]
    assert problem.startswith("seed 0 cannot be used: ") and "session.json was changed: its digest" in problem


def test_one_code_version_is_one_digest_whatever_the_commit(sessions: list[SessionDir], entry: Entry) -> None:
    for one, sha in zip(sessions, ("a" * 40, "b" * 40, "c" * 40), strict=True):
        with_digest(one, "0123456789ab", sha)
    assert audit(result_of(sessions), entry) == []
    with_digest(sessions[1], "ba9876543210", "a" * 40)
    assert audit(result_of(sessions), entry) == ["it was computed with different code: 0123456789, ba98765432"]


def test_without_a_digest_one_code_version_is_one_commit(sessions: list[SessionDir], entry: Entry) -> None:
    with_digest(sessions[0], "0123456789ab", "fedcba9876543210")
    assert audit(result_of(sessions), entry) == ["it was computed with different code: 0123456789, fedcba9876"]


# What the experiment declares differently from what was run.


def test_missing_and_additional_seeds_are_rejected(sessions: list[SessionDir], entry: Entry) -> None:
    result = result_of(sessions)
    assert audit(result, replace(entry, seeds=(0, 1, 2, 3, 4))) == ["seeds 3, 4 are missing"]
    assert audit(result, replace(entry, seeds=(0, 1))) == ["seed 2 is not declared by the experiment"]
    assert audit(replace(result, sessions=[*result.sessions, result.sessions[0]]), entry) == ["it has a seed twice"]


def test_the_seeds_of_a_search_are_rejected(sessions: list[SessionDir], entry: Entry) -> None:
    result = result_of(sessions)
    (first, *_) = result.sessions
    searched = replace(result, sessions=[replace(first, seed=SEARCH_SEEDS_FROM)])
    expected = "it is part of a search: train the best setting on the seeds of the benchmark"
    assert audit(searched, replace(entry, seeds=(SEARCH_SEEDS_FROM,))) == [expected]
    assert audit(result, replace(entry, searched=True)) == [expected]


def declared(entry: Entry, **changes: Any) -> Entry:
    return replace(entry, trial=entry.trial.with_(**changes))


def test_other_settings_are_rejected(sessions: list[SessionDir], entry: Entry) -> None:
    result, trial = result_of(sessions), entry.trial
    agent = declared(entry, agent=trial.agent.with_(gamma=0.5, rollout=64))
    assert audit(result, agent) == [
        "settings differ: agent.gamma is 0.99, the experiment has 0.5; agent.rollout is 2048, the experiment has 64"
    ]
    frames = declared(entry, budget=trial.budget.with_(frames=20_000))
    assert audit(result, frames) == ["the budget is 10,000 frames, the experiment has 20,000"]
    interval = declared(entry, budget=trial.budget.with_(log_every=100))
    assert audit(result, interval) == ["the log interval is 50 frames, the experiment has 100"]
    env = declared(entry, env=trial.env.with_(id="Acrobot-v1"))
    assert audit(result, env) == ["the environment is CartPole-v1, the experiment has Acrobot-v1"]


def test_settings_that_do_not_matter_may_differ(sessions: list[SessionDir], entry: Entry) -> None:
    threads = declared(entry, compute=entry.trial.compute.with_(threads=2))
    assert audit(result_of(sessions), threads) == []


def test_another_metric_and_another_score_are_rejected(sessions: list[SessionDir], entry: Entry) -> None:
    result = result_of(sessions)
    assert audit(replace(result, metric="best_return"), entry) == ["its metric is best_return, not episode_return_ma"]
    first, *others = result.sessions
    higher = replace(result, sessions=[replace(first, score=120.0), *others])
    assert audit(higher, entry) == ["the score of seed 0 is 120, but its last log points have a mean of 100"]


def test_a_changed_file_is_rejected(sessions: list[SessionDir], entry: Entry, tmp_path: Path) -> None:
    path = write_result(tmp_path, result_of(sessions))
    edit(path, lambda text: text.replace('"dirty": false', '"dirty": true', 1))
    assert audit(read_result(path), entry) == ["the file was changed: its digest does not fit it"]


def test_an_id_that_does_not_fit_the_settings_is_rejected(sessions: list[SessionDir], entry: Entry) -> None:
    result: Result = replace(result_of(sessions), trial="0123456789ab")
    assert audit(result, entry) == [f"its settings have the id {entry.trial.id}, but it says 0123456789ab"]


def test_what_an_earlier_format_did_not_record_is_named(sessions: list[SessionDir], entry: Entry) -> None:
    result = result_of(sessions)
    old = [replace(one, curve=None, provenance=None, compute=None) for one in result.sessions]
    assert audit(replace(result, sessions=old), entry) == []
    assert unverified(replace(result, sessions=old)) == [
        "the curve of each seed",
        "code and packages of every seed",
        "device and kernels",
    ]
