"""A trained policy is pushed as a model, and played from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard

from rldsl import PPO, Classic, experiment, load_policy, run
from rldsl.cli.app import run_rldsl
from rldsl.hub.agent import download_agent, parse_address
from rldsl.hub.retry import HubError
from rldsl.store.errors import StoreError
from rldsl.store.journal import read_journal
from tests.hub.loopback import TOKEN, Hub, Repo, running_hub
from tests.project import environment

NAME = "me/ppo-CartPole-v1"
RLDSL = str(Path(sys.executable).with_name("rldsl"))
OBSERVATIONS = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "runs"
    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(PPO(rollout=32)).frames(1024)
    run(cartpole.log_every(256), overrides={"compute.compile": "off"}, runs=folder, verbose=False)
    return folder


def session_of(runs: Path) -> str:
    (path,) = runs.glob("*/*/seed-0")
    return f"{path.parent.name.rpartition('-')[2]}-s0"


def push(runs: Path, *options: str) -> int:
    return run_rldsl(["push", "--agent", session_of(runs), "--repo", NAME, "--runs", str(runs), *options])


@pytest.fixture(scope="module")
def model(runs: Path) -> Repo:
    """The repository that a push makes; evaluating and filming take some seconds."""
    with running_hub() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", server.url)
        patch.setenv("HF_TOKEN", TOKEN)
        assert push(runs, "--episodes", "3") == 0
        return server.repo(NAME, "models")


@pytest.fixture
def pushed(hub: Hub, model: Repo) -> Hub:
    hub.repos["models", NAME] = Repo(model.private, list(model.commits), list(model.written))
    return hub


def test_a_model_has_weights_card_evaluation_and_video(pushed: Hub, runs: Path, tmp_path: Path) -> None:
    files = pushed.repo(NAME, "models").files
    assert pushed.repo(NAME, "models").private
    assert {"session.json", "config.gin", "metrics.csv", "provenance.json", "SHA256SUMS", "results.json"} <= set(files)
    assert {"arrays.safetensors", "state.json", "manifest.json"} == {
        path.removeprefix("checkpoints/best/") for path in files if path.startswith("checkpoints/")
    }
    assert b"ftyp" in files["replay.mp4"][:16] and len(files["replay.mp4"]) > 1000
    results = json.loads(files["results.json"])
    assert len(results["returns"]) == 3 and results["mean_reward"] == pytest.approx(np.mean(results["returns"]))
    card = ModelCard(files["README.md"].decode())
    assert card.data.library_name == "rldsl" and card.data.pipeline_tag == "reinforcement-learning"
    assert {"CartPole-v1", "ppo", "deep-reinforcement-learning"} <= set(card.data.tags)
    (result,) = card.data.eval_results
    value = f"{results['mean_reward']:.2f} +/- {np.std(results['returns']):.2f}"
    assert (result.task_type, result.dataset_type, result.metric_type) == (
        "reinforcement-learning",
        "CartPole-v1",
        "mean_reward",
    )
    assert result.metric_value == value and result.verified is False
    assert f'policy = rldsl.load_policy("hf://{NAME}")' in card.text


def test_the_policy_is_loaded_from_the_hub_and_cached(pushed: Hub, runs: Path) -> None:
    local, policy = load_policy(session_of(runs), runs=runs), load_policy(f"hf://{NAME}")
    np.testing.assert_array_equal(policy(OBSERVATIONS), local(OBSERVATIONS))
    reads = [call for call in pushed.calls() if call.startswith("GET") and "/resolve/" in call]
    assert reads and not [call for call in reads if "replay.mp4" in call or "metrics.csv" in call]
    load_policy(f"hf://{NAME}")
    assert [call for call in pushed.calls() if call.startswith("GET") and "/resolve/" in call] == reads


def test_the_policy_is_played_by_enjoy(pushed: Hub, tmp_path: Path) -> None:
    ours = {name: os.environ[name] for name in ("HF_ENDPOINT", "HF_TOKEN", "HF_HOME", "HF_HUB_DISABLE_XET")}
    done = subprocess.run(
        [RLDSL, "enjoy", f"hf://{NAME}", "--episodes", "3", "--json"],
        cwd=tmp_path,
        env={**environment(), **ours},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    played = [episode["return"] for episode in json.loads(done.stdout)["episodes"]]
    assert played == json.loads(pushed.repo(NAME, "models").files["results.json"])["returns"]


def test_training_starts_from_its_weights(pushed: Hub, runs: Path, tmp_path: Path) -> None:
    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).frames(256).log_every(128)
    frozen = cartpole.agent(PPO(rollout=32, lr=1e-12)).init_from(f"hf://{NAME}").compute(compile="off")
    started = [run(frozen, seeds=seeds, runs=tmp_path / "runs", verbose=False)[-1] for seeds in (1, 2)]
    assert [one.state for one in started] == ["done", "done"] and [one.seed for one in started] == [0, 1]
    local = load_policy(session_of(runs), runs=runs)
    for one in started:
        started_from = load_policy(one.id, runs=tmp_path / "runs", checkpoint="last")
        np.testing.assert_array_equal(started_from(OBSERVATIONS), local(OBSERVATIONS))
        assert "initialized" in [event["event"] for event in read_journal(one.directory / "journal.jsonl")]
    reads = [call for call in pushed.calls() if call.startswith("GET") and call.endswith("arrays.safetensors")]
    assert len(reads) == 1, "downloaded once, by the client of the Hub"


def test_a_public_agent_needs_no_token(pushed: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="HF_TOKEN is not set"):
        download_agent(f"hf://{NAME}", ())
    pushed.repo(NAME, "models").private = False
    assert download_agent(f"hf://{NAME}", ()).exists()


def test_changed_weights_are_refused(pushed: Hub) -> None:
    repo = pushed.repo(NAME, "models")
    repo.commit({**repo.files, "checkpoints/best/arrays.safetensors": b"evil"}, set())
    with pytest.raises(StoreError, match=r"arrays.safetensors of the model repository .* does not have its checksum"):
        load_policy(f"hf://{NAME}")


def test_a_model_that_is_no_agent(hub: Hub) -> None:
    from rldsl.hub.repository import Repository

    Repository("me/else", kind="model").create()
    with pytest.raises(StoreError, match="is no agent of rldsl"):
        download_agent("hf://me/else", ())
    with pytest.raises(HubError, match="has no such repository"):
        download_agent("hf://me/nothing", ())


def test_addresses() -> None:
    assert parse_address("hf://me/ppo") == ("me/ppo", None)
    assert parse_address("hf:/me/ppo@v1.0") == ("me/ppo", "v1.0")
    for wrong in ("hf://me", "hf://me/../x/y", "hf://me/x@", "hf://datasets/me/x"):
        with pytest.raises(HubError, match="is no address of an agent"):
            parse_address(wrong)


def test_what_cannot_be_pushed(hub: Hub, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_rldsl(["push", "--agent", session_of(runs), "--runs", str(runs)]) == 2
    assert "which repository? --repo OWNER/NAME" in capsys.readouterr().err
    assert push(runs, "x.py") == 2
    assert "--agent pushes one session" in capsys.readouterr().err
    (log,) = runs.glob("*/*/seed-0/metrics.csv")
    assert TOKEN not in log.read_text() and not hub.repos
