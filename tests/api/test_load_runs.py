"""`rldsl.load_runs`: sessions as Python objects, also old ones, and none that cannot be read."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rldsl
from rldsl import PPO, Classic, Random, Run, experiment
from rldsl.api import runs as module
from rldsl.spec.session import Session, recorded_id
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=2)).frames(256).log_every(64)
SMALL = PPO(rollout=32, minibatch=32, max_grad_norm=0.25)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    rldsl.run(CARTPOLE.agent(Random()).seeds(2), CARTPOLE.agent(SMALL), runs=runs)
    return runs


def test_a_run_knows_its_session(trained: Path) -> None:
    runs = rldsl.load_runs(trained)
    assert [(run.experiment, run.seed, run.state) for run in runs] == [
        ("cartpole/ppo", 0, "done"),
        ("cartpole/random", 0, "done"),
        ("cartpole/random", 1, "done"),
    ]
    assert runs[0].spec.trial.agent == SMALL and runs[0].id == runs[0].spec.id
    assert repr(runs[0]) == f"Run('cartpole/ppo', seed=0, state='done', id='{runs[0].id}')"
    assert runs[0].directory == trained / runs[0].spec.directory


def test_sessions_can_be_selected(trained: Path) -> None:
    ppo, random, _ = rldsl.load_runs(trained)
    for name in ("cartpole/ppo", "ppo"):
        assert [run.id for run in rldsl.load_runs(trained, experiment=name)] == [ppo.id]
    assert len(rldsl.load_runs(str(trained), experiment="cartpole")) == 3
    assert [run.id for run in rldsl.load_runs(trained, sessions=[ppo.id, random.id])] == [ppo.id, random.id]
    assert rldsl.load_runs(trained, experiment="pp") == []


def columns(run: Run) -> dict[str, np.ndarray]:
    metrics = run.metrics()
    return {name: np.asarray(metrics[name]) for name in metrics}


def test_metrics_are_arrays_where_there_is_no_pandas(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    metrics = rldsl.load_runs(trained, experiment="ppo")[0].metrics()
    assert isinstance(metrics, dict) and metrics["frame"].tolist() == [64, 128, 192, 256]
    assert np.isnan(metrics["policy_loss"][0]) and np.isfinite(metrics["policy_loss"][1:]).all()


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")
def test_metrics_are_a_data_frame_where_there_is_pandas(trained: Path) -> None:
    metrics = rldsl.load_runs(trained, experiment="ppo")[0].metrics()
    assert type(metrics).__name__ == "DataFrame" and metrics["frame"].tolist() == [64, 128, 192, 256]


def test_a_session_without_log_points_has_no_curve(tmp_path: Path) -> None:
    session = Session(experiment="x", trial=CARTPOLE.agent(Random()).build().base(), seed=0)
    SessionDir.create(tmp_path, session.directory, session.record(), "")
    (run,) = rldsl.load_runs(tmp_path)
    assert run.state == "new" and np.isnan(run.score) and len(run.metrics()) == 0


def rewrite(path: Path, change: Any) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def as_schema_1(record: dict[str, Any]) -> dict[str, Any]:
    agent = record["trial"]["agent"]
    agent["grad_clip"] = agent.pop("max_grad_norm")
    old = {name: value for name, value in record.items() if name != "digest"} | {"schema": 1}
    return {**old, "trial_id": recorded_id(old), "id": f"{recorded_id(old)}-s0"}


def test_a_session_of_schema_1_is_read(trained: Path, tmp_path: Path) -> None:
    new = rldsl.load_runs(trained, experiment="ppo")[0]
    record = as_schema_1(json.loads((new.directory / "session.json").read_text()))
    old = tmp_path / "classic-cartpole-v1" / f"ppo-{record['trial_id']}" / "seed-0"
    shutil.copytree(new.directory, old)
    (old / "session.json").write_text(json.dumps(record))
    metrics = old / "metrics.csv"
    header = metrics.read_text()
    metrics.write_text(header.replace("episode_return_ma", "return_ma", 1).replace("episode_return", "return", 1))
    (run,) = rldsl.load_runs(tmp_path)
    assert run.id == record["id"] != new.id and run.spec.trial == new.spec.trial and run.score == new.score
    np.testing.assert_array_equal(columns(run)["episode_return"], columns(new)["episode_return"])
    assert rldsl.load_policy(run)(np.zeros(4)) == rldsl.load_policy(new)(np.zeros(4))


def unknown_agent(record: dict[str, Any]) -> dict[str, Any]:
    record["trial"]["agent"] = {"kind": "of_another_project"}
    return {name: value for name, value in record.items() if name != "digest"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [(unknown_agent, "names no known agent"), (lambda record: [], "it is not a JSON object")],
)
def test_what_cannot_be_read_is_skipped_with_a_reason(change: Any, reason: str, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    broken = rldsl.load_runs(tmp_path, experiment="ppo")[0].directory
    rewrite(broken / "session.json", change)
    with pytest.warns(UserWarning, match=f"skipped {broken}: .*{reason}"):
        runs = rldsl.load_runs(tmp_path)
    assert [run.experiment for run in runs] == ["cartpole/random"] * 2


def test_a_run_directory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no run directory"):
        rldsl.load_runs(tmp_path / "nix")
    (tmp_path / "empty").mkdir()
    assert rldsl.load_runs(tmp_path / "empty") == []
