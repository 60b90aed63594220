"""Searches on this machine, with real processes: packs, failures, what is on disk already, one driver at a time."""

from __future__ import annotations

import json
import signal

import pytest

from rldsl.store.search_dir import SearchDir
from tests.launch.coin import directory, journal, write
from tests.project import Project, events, until


def members(project: Project) -> list[list[int]]:
    """The sizes of the packs that each session was trained in."""
    return [[event["members"] for event in events(one) if event["event"] == "started"] for one in project.sessions]


def test_a_random_search_trains_packs_and_a_second_command_does_nothing(project: Project) -> None:
    write(project, "random(trials=6)", parallel=2)
    ran = project.python("exp.py", "search")
    assert ran.returncode == 0, ran.stderr
    assert members(project) == [[3]] * 6, "split evenly over two processes"
    happened = journal(project)
    assert sorted(one["trial"] for one in happened if one["event"] == "finished") == list(range(6))
    again = project.python("exp.py", "search")
    assert again.returncode == 0 and journal(project) == happened and members(project) == [[3]] * 6

    write(project, "random(trials=8)", parallel=2)
    assert project.python("exp.py", "search").returncode == 0
    assert journal(project)[: len(happened)] == happened, "more trials continue the same search"
    assert len(project.sessions) == 8


def test_packs_of_a_promotion_shrink_and_seeds_are_added(project: Project) -> None:
    write(project, "asha(trials=4, grace=100, eta=2, min_results=4, seeds=(1, 2))")
    assert project.python("exp.py", "search").returncode == 0
    started = [(one["trial"], one["rung"]) for one in journal(project) if one["event"] == "started"]
    assert started[:4] == [(0, 0), (1, 0), (2, 0), (3, 0)] and {rung for _, rung in started} == {0, 1, 2}
    promoted = {trial for trial, rung in started if rung == 1}
    assert len(promoted) == 2 and len([one for one in started if one[1] == 2]) == 1
    planned = project.python("exp.py", "plan").stdout
    assert "  finished: all its trials have ended, `report` shows them" in planned
    assert planned.splitlines()[-1] == "4 trials, 6 sessions: 2 done, 4 paused; 0 frames to go"
    sizes = sorted(members(project))
    assert sizes == sorted([[4], [4], [4, 2], [4, 2, 2], [2], [2, 2]]), "the second seed starts at frame 0"
    states = [events(one)[-1]["event"] for one in project.sessions]
    assert sorted(states) == ["done"] * 2 + ["paused"] * 4
    path = directory(project) / "journal.jsonl"  # as if the driver had been killed before a trial finished rung 1
    lines = path.read_text().splitlines(keepends=True)
    finished = [parsed["event"] == "finished" and parsed["rung"] == 1 for parsed in map(json.loads, lines)]
    path.write_text("".join(lines[: finished.index(True)]))
    shown = project.python("exp.py", "status").stdout
    assert "4 of 4 trials: 3 paused, 1 resume; nothing drives it" in shown, "two are at rung 0, one is at rung 1"


def test_failed_trials_are_told_apart_and_the_search_continues(project: Project) -> None:
    write(project, "random(trials=8)", "uniform(0.0, 1.0)")
    ran = project.python("exp.py", "search")
    assert ran.returncode == 0, ran.stderr
    suggested = {one["trial"]: one["point"]["agent.p"] for one in journal(project) if one["event"] == "suggested"}
    failed = {one["trial"]: one["reason"] for one in journal(project) if one["event"] == "failed"}
    finished = {one["trial"] for one in journal(project) if one["event"] == "finished"}
    assert {trial for trial, p in suggested.items() if p > 0.9 or p < 0.1} == failed.keys() != set()
    assert finished == suggested.keys() - failed.keys(), "a trial that crashes does not take its pack along"
    for trial, reason in failed.items():
        assert ("is lost" if suggested[trial] > 0.9 else "diverged") in reason


def test_an_error_of_all_trials_stops_the_search_and_is_said_once(project: Project) -> None:
    write(project, "random(trials=8)", "uniform(0.91, 1.0)")
    ran = project.python("exp.py", "search")
    assert ran.returncode == 1
    assert "stopped: the first 3 trials failed with the same error: RuntimeError: the coin of" in ran.stdout
    assert ran.stdout.count("Traceback") == 0
    fixed = (project.root / "coin.py").read_text().replace("raise RuntimeError", "print")
    (project.root / "coin.py").write_text(fixed)
    again = project.python("exp.py", "search")
    assert again.returncode == 1, "failed trials are not tried again unasked"
    ran = project.python("exp.py", "search", "--retry-failed")
    assert ran.returncode == 0, ran.stdout
    assert {one["trial"] for one in journal(project) if one["event"] == "finished"} == set(range(8))


def test_settings_that_never_fit_together_stop_the_search(project: Project) -> None:
    project.write("""
        from rldsl import PPO, Classic, experiment, int_uniform, main

        ppo = experiment("x").env(Classic("CartPole-v1", num_envs=2)).agent(PPO(rollout=32)).frames(400)
        main(ppo.search(minibatch=int_uniform(33, 63)).nevergrad(trials=12))
        """)
    ran = project.python("exp.py", "search")
    assert ran.returncode == 1, ran.stdout
    assert "stopped: the first 3 trials failed with the same error: " in ran.stdout, ran.stdout
    assert "--retry-failed" not in ran.stdout, "they cannot be trained at all"
    assert sum(one["event"] == "failed" for one in journal(project)) == 3 and not project.sessions


def test_the_plan_of_an_adaptive_search_lists_the_trials_that_were_chosen(project: Project) -> None:
    write(project, "nevergrad(trials=2)")
    assert project.python("exp.py", "search").returncode == 0
    planned = project.python("exp.py", "plan").stdout
    assert "finished: all its trials have ended" in planned and "cannot be listed" not in planned
    assert planned.splitlines()[-1] == "2 trials, 2 sessions: 2 done; 0 frames to go"
    file = directory(project) / "journal.jsonl"
    first = [line for line in file.read_text().splitlines(keepends=True) if json.loads(line).get("trial") == 0]
    file.write_text("".join(first))
    planned = project.python("exp.py", "plan").stdout
    assert "1 trial cannot be listed yet" in planned and "--all" not in planned
    assert planned.splitlines()[-1] == "2 trials, 2 sessions: 1 done, 1 new; 400 frames to go"
    lines = json.loads(project.rldsl("plan", "exp.py", "coin.py", "--json").stdout)
    assert (lines[0]["sessions"], lines[0]["frames"]) == (2, 400), "in the overview of several files too"


@pytest.mark.parametrize(("options", "more"), [(["--fail-fast"], ""), ([], ", max_failures=1")])
def test_a_failure_can_stop_the_search(project: Project, options: list[str], more: str) -> None:
    write(project, f"random(trials=12{more})", "choice(0.05, 0.5)")
    ran = project.python("exp.py", "search", *options)
    assert ran.returncode == 1 and "diverged: its parameters are not finite any more" in ran.stdout
    ended = [one for one in journal(project) if one["event"] in ("finished", "failed")]
    assert 0 < len(ended) < 12


def test_sessions_on_disk_are_not_trained_again(project: Project) -> None:
    write(project, "asha(trials=4, grace=100, eta=2, min_results=4, seeds=(1, 2))")
    assert project.python("exp.py", "search").returncode == 0
    first, sizes = journal(project), members(project)
    (directory(project) / "journal.jsonl").unlink()
    assert project.python("exp.py", "search").returncode == 0
    assert members(project) == sizes, "no process was started"
    results = [one for one in first if one["event"] == "finished"]
    assert [one for one in journal(project) if one["event"] == "finished"] == results


def test_a_damaged_journal_is_refused(project: Project) -> None:
    write(project, "asha(trials=4, grace=100, eta=2, min_results=4)")
    assert project.python("exp.py", "search").returncode == 0
    file = directory(project) / "journal.jsonl"
    file.write_text(file.read_text().replace('"rung": 0', '"rung": 1', 1))
    ran = project.python("exp.py", "search")
    assert ran.returncode == 2 and "journal.jsonl has 1 damaged line: remove it" in ran.stdout + ran.stderr
    file.unlink()
    assert project.python("exp.py", "search").returncode == 0


def test_a_second_driver_is_refused(project: Project) -> None:
    write(project, "random(trials=2)")
    assert project.python("exp.py", "search").returncode == 0
    search = SearchDir(directory(project))
    with search.claim():
        assert search.running
        ran = project.python("exp.py", "search")
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"error: the search {search.path.name} is already running on ")
    assert ran.stderr.count("\n") == 1 and not search.running


def test_ctrl_c_checkpoints_and_the_same_command_continues(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COIN_SLEEP", "0.01")
    write(project, "random(trials=4)")
    process = project.start("exp.py", "search")
    until(lambda: any(event["event"] == "checkpoint" for one in project.sessions for event in events(one)))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopped, all progress is saved; to continue: " in said
    assert {events(one)[-1]["event"] for one in project.sessions} == {"stopped"}
    assert not any(one["event"] in ("finished", "failed") for one in journal(project))
    assert "4 trials: 4 resume" in said, "nothing trains them any more"
    assert "4 of 4 trials: 4 resume; nothing drives it" in project.python("exp.py", "status").stdout
    monkeypatch.setenv("COIN_SLEEP", "0")
    assert project.python("exp.py", "search").returncode == 0
    assert [one["trial"] for one in journal(project) if one["event"] == "finished"] == [0, 1, 2, 3]
