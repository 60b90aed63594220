"""Functions of the user at log points and at the end of sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rldsl
from rldsl import Classic, Random, SpecError, experiment
from rldsl.cli.status_view import show
from rldsl.report.status import run_states
from rldsl.spec.experiment import Trial
from rldsl.spec.hooks import hook_name
from rldsl.spec.session import Session
from rldsl.store.checkpoint import load_checkpoint
from tests.project import Project, events, rows
from tests.train import hooked
from tests.train.packs import CARTPOLE, PPO_SMALL, curve, session, train

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "early_stopping.py"


def with_hooks(seed: int = 0, **hooks: Callable[..., Any]) -> Session:
    one = session(PPO_SMALL, CARTPOLE, seed)
    names = {name: hook_name(function, f".{name}") for name, function in hooks.items()}
    return Session(experiment="test", trial=Trial.parse(one.trial.data() | names), seed=seed)


def test_a_hook_ends_one_member_and_the_others_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooked.ENDED.clear()
    sessions = [with_hooks(seed, on_log=hooked.stop_seed_0, on_end=hooked.collect) for seed in (0, 1)]
    pack = train(tmp_path, *sessions)
    first, second = (directory.path for directory in pack.directories)
    assert [directory.state() for directory in pack.directories] == ["done", "done"]
    done = events(first)[-1]
    assert (done["event"], done["frame"]) == ("done", 192)
    assert done["reason"] == "ended by tests.train.hooked:stop_seed_0: far enough"
    acted = next(one for one in events(first) if one["event"] == "hook")
    assert acted["checkpoints"] == ["early"] and acted["stop"] == "far enough"
    assert len(rows(first)) == 3 and len(rows(second)) == 8
    alone = curve(train(tmp_path / "alone", sessions[1]).directories[0].path)
    np.testing.assert_allclose(curve(second)["entropy"], alone["entropy"], rtol=1e-4)
    saved = load_checkpoint(first / "checkpoints", tag="early")
    assert saved is not None and saved.frame == 192
    assert rldsl.load_policy(first, "early")(np.zeros(4)) in (0, 1)
    ended = [(end.seed, end.outcome, end.frame) for end in hooked.ENDED[:2]]
    assert ended == [(0, "done", 192), (1, "done", 512)]
    assert hooked.ENDED[0].metrics["episode_return"] == pytest.approx(float(rows(first)[-1]["episode_return"]))
    show(run_states(tmp_path), as_json=False)
    shown = capsys.readouterr().out
    assert re.search(r"-s0 +done +192 ", shown) and re.search(r"-s1 +done +512 ", shown)


def test_a_hook_that_raises_fails_the_session_with_a_sentence(tmp_path: Path) -> None:
    hooked.ENDED.clear()
    with pytest.raises(SpecError, match=r"tests.train.hooked:fail of .on_log raised ValueError: the hook is broken"):
        train(tmp_path, with_hooks(on_log=hooked.fail, on_end=hooked.collect))
    (path,) = tmp_path.glob("*/*/*")
    assert events(path)[-1]["event"] == "failed" and "the hook is broken" in events(path)[-1]["reason"]
    assert [(end.outcome, end.reason is not None) for end in hooked.ENDED] == [("failed", True)]


def test_a_hook_that_raises_at_the_end_is_reported(tmp_path: Path) -> None:
    pack = train(tmp_path, with_hooks(on_end=hooked.fail_at_end))
    assert pack.directories[0].state() == "done"
    assert events(pack.directories[0].path)[-1]["problem"] == "raised ValueError: the last hook is broken"


def test_identity() -> None:
    """What can end a session is part of its identity; what only hears of its end is not."""
    plain = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(100)
    ids = {one.build().id for one in (plain, plain.on_end(hooked.collect))}
    assert ids == {plain.build().id} != {plain.on_log(hooked.stop_seed_0).build().id}
    assert "on_log" not in plain.build().data()
    assert plain.on_log(hooked.fail).build().on_log == "tests.train.hooked:fail"


@pytest.mark.parametrize("wrong", [lambda point: None, 3, "module:function"])
def test_only_functions_of_files_are_hooks(wrong: Any) -> None:
    with pytest.raises(SpecError, match=r".on_log\(...\) takes a function that is defined at the top of a file"):
        experiment("x").on_log(wrong)


def test_the_example(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(EXAMPLE.read_text())
    ran = project.python("exp.py")
    assert ran.returncode == 0, ran.stdout
    assert "ended by exp:stop_when_solved: solved at frame" in ran.stdout
    assert (project.session / "checkpoints" / "first-100").is_dir()
    assert "is done at frame" in (project.session / "ended.txt").read_text()
    assert "done" in project.rldsl("status", "exp.py").stdout
