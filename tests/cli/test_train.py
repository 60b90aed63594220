"""The whole path, from `python exp.py` to the files that it leaves."""

from __future__ import annotations

import json
import re

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rldsl import Classic, Random
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Session
from tests.cli.conftest import OVERRIDES, Trained
from tests.project import events, rows

TRIAL = Trial(agent=Random(), env=Classic("CartPole-v1", num_envs=2), budget=Budget(2000, log_every=200))


def test_training_ends_well_and_says_how_it_went(trained: Trained) -> None:
    assert trained.said.returncode == 0, trained.said.stderr
    lines = trained.said.stdout.splitlines()
    assert "cartpole/random seed 0: started" in lines
    assert re.search(
        r"^done +cartpole/random seed 1: 2k/2k frames, return \d+\.\d, ", trained.said.stdout, re.MULTILINE
    )
    assert lines[-1] == "2 sessions: 2 done"
    assert "\x1b" not in trained.said.stdout, "no colours and no bars where nobody looks"


def test_every_session_has_a_directory_of_its_own(trained: Trained) -> None:
    runs = trained.project.runs
    expected = [f"cartpole-v1/random-{TRIAL.id}/seed-{seed}" for seed in (0, 1)]
    assert [str(path.relative_to(runs)) for path in trained.project.sessions] == expected


def test_the_directory_holds_the_resolved_spec_and_what_was_overridden(trained: Trained) -> None:
    for seed, path in enumerate(trained.project.sessions):
        record = json.loads((path / "session.json").read_text())
        session = Session.from_record(record)
        assert session.trial == TRIAL
        assert (session.experiment, session.seed, session.target.score) == ("cartpole/random", seed, 400)
        assert record["id"] == f"{TRIAL.id}-s{seed}"
        assert [(one.path, one.was, one.now, one.source) for one in session.overrides] == [
            ("env.num_envs", 4, 2, "--set env.num_envs=2"),
            ("budget.frames", 20_000, 2_000, "--frames 2e3"),
        ]


def test_the_metrics_have_a_line_for_each_log_point(trained: Trained) -> None:
    for path in trained.project.sessions:
        points = rows(path)
        assert [int(row["frame"]) for row in points] == list(range(200, 2001, 200))
        episodes = [int(row["episodes"]) for row in points]
        assert episodes == sorted(episodes)
        assert 60 < episodes[-1] < 140, "random play keeps the pole up for about twenty steps"
        assert 10 < float(points[-1]["episode_return"]) < 40
        assert float(points[-1]["length"]) == float(points[-1]["episode_return"]), "a reward of 1 for each step"
        means = [float(row["episode_return"]) for row in points]
        assert abs(float(points[-1]["episode_return_ma"]) - sum(means) / len(means)) < 1e-9
        seconds = [float(row["seconds"]) for row in points]
        assert seconds == sorted(seconds)


def test_seeds_differ(trained: Trained) -> None:
    one, other = trained.project.sessions
    assert [row["episode_return"] for row in rows(one)] != [row["episode_return"] for row in rows(other)]


def test_tensorboard_reads_the_same_numbers(trained: Trained) -> None:
    path = trained.project.sessions[0]
    accumulator = EventAccumulator(str(path / "tb"))
    accumulator.Reload()
    points = rows(path)
    for column in ("episode_return", "episode_return_ma", "length", "episodes"):
        scalars = accumulator.Scalars(f"charts/{column}")
        assert [one.step for one in scalars] == [int(row["frame"]) for row in points]
        for one, row in zip(scalars, points, strict=True):
            assert abs(one.value - float(row[column])) <= 1e-5 * abs(one.value)


def test_the_journal_tells_the_story(trained: Trained) -> None:
    for path in trained.project.sessions:
        story = events(path)
        assert [one["event"] for one in story] == ["created", "started", "checkpoint", "checkpoint", "done"]
        assert story[-1]["frame"] == 2000


def test_the_provenance_says_where_it_came_from(trained: Trained) -> None:
    for path in trained.project.sessions:
        origin = json.loads((path / "provenance.json").read_text())
        assert origin["command"] == ["python", "exp.py", "train", *OVERRIDES]
        assert {"numpy", "torch", "gymnasium", "rldsl"} <= origin["packages"].keys()
        assert {"code", "host", "python", "hardware"} <= origin.keys()


def test_the_config_given_back_is_the_same_session(trained: Trained) -> None:
    for path in trained.project.sessions:
        ran = trained.project.python("exp.py", "plan", "--json", "--gin-file", path / "config.gin")
        (trial,) = json.loads(ran.stdout)["trials"]
        assert trial["id"] == TRIAL.id
        (session,) = trial["sessions"]
        assert session["id"] == json.loads((path / "session.json").read_text())["id"]
        assert session["state"] == "done"


def test_training_again_does_nothing_and_says_done(trained: Trained) -> None:
    def contents() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in trained.project.runs.rglob("*") if path.is_file()}

    before = contents()
    again = trained.project.python("exp.py", "train", *OVERRIDES)
    assert again.returncode == 0
    assert again.stdout.splitlines()[-1] == "2 sessions: 2 done"
    assert "started" not in again.stdout
    assert contents() == before


def test_one_seed_more_trains_one_session_more(trained: Trained) -> None:
    plan = trained.project.python("exp.py", "plan", *OVERRIDES, "--seeds", "3")
    assert plan.stdout.splitlines()[-1].startswith("1 trial, 3 sessions: 2 done, 1 new; 2k frames to go, about")


def test_the_plan_shows_what_was_overridden_and_an_estimate(trained: Trained) -> None:
    shown = trained.project.python("exp.py", "plan", "--set", "env.num_envs=2", "--frames", "1e7").stdout
    assert "  env.num_envs = 2  instead of 4  (--set env.num_envs=2)" in shown
    assert "  budget.frames = 10000000  instead of 20000  (--frames 1e7)" in shown
    assert re.search(r"-s0 +0 +extend +1\.\d+k/10M +\S+", shown)
    assert re.search(r"2 sessions: 2 extend; 20M frames to go, about .* of work left", shown)


def test_status_shows_the_sessions(trained: Trained) -> None:
    shown = trained.project.python("exp.py", "status", *OVERRIDES).stdout
    assert re.search(rf"cartpole/random +{TRIAL.id}-s0 +done +2k .* 400 ", shown)
    assert shown.splitlines()[-1] == "2 sessions: 2 done"
    found = trained.project.python("exp.py", "status").stdout.splitlines()
    assert "4 sessions: 2 new, 2 done" in found
    assert found[-1] == "some were trained with --set env.num_envs=2, --frames 2e3"


def test_status_for_programs(trained: Trained) -> None:
    told = json.loads(trained.project.python("exp.py", "status", "--json", *OVERRIDES).stdout)
    assert [(one["session"], one["state"], one["frame"]) for one in told] == [
        (f"{TRIAL.id}-s0", "done", 2000),
        (f"{TRIAL.id}-s1", "done", 2000),
    ]
    last = rows(trained.project.sessions[0])[-1]
    for name in ("episode_return", "episode_return_ma"):
        assert told[0][name] == float(last[name])
    assert told[0]["target"] == 400


def test_list_shows_every_session_of_a_run_directory(trained: Trained) -> None:
    listed = json.loads(trained.project.rldsl("list", "--json").stdout)
    assert [one["session"] for one in listed] == [f"{TRIAL.id}-s0", f"{TRIAL.id}-s1"]
    assert "2 sessions: 2 done" in trained.project.rldsl("list").stdout
    assert trained.project.rldsl("list", "--runs", "nowhere").stdout == "there are no sessions\n"


def test_diff_shows_what_differs_and_nothing_else(trained: Trained) -> None:
    a, b = f"{TRIAL.id}-s0", f"{TRIAL.id}-s1"
    assert json.loads(trained.project.rldsl("diff", a, b, "--json").stdout) == [
        {"of": "settings", "name": "seed", "a": 0, "b": 1}
    ]
    assert re.search(r"settings +seed +0 +1", trained.project.rldsl("diff", a, b).stdout)
    assert trained.project.rldsl("diff", a, a).stdout == f"{a} and {a} do not differ\n"
    missing = trained.project.rldsl("diff", a, "zzz")
    assert missing.returncode == 2
    assert "no session in runs matches 'zzz'" in missing.stderr
