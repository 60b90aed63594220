"""Running sessions in a bucket with the real client and its Xet storage, or in a repository with squashed history."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl.hub import live
from rldsl.hub.bucket import Bucket
from rldsl.hub.live import LiveStore, SquashedRepository
from rldsl.hub.repository import Repository
from rldsl.hub.sync import Sync
from rldsl.store.checkpoint import checkpoint_frames, load_checkpoint, save_checkpoint
from rldsl.store.session_dir import SessionDir
from tests.hub.loopback import Hub
from tests.hub.test_sync import SESSION, TrainingSession, rows

NAME = "me/live"
SHORT = (0.01, 0.01)


@pytest.fixture
def buckets(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The client may use its Xet storage."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    return hub


def sync(runs: Path) -> Sync:
    store = LiveStore(NAME, SHORT)
    store.create()
    return Sync(store, runs, [SESSION])


def test_sessions_are_kept_in_a_bucket(buckets: Hub, tmp_path: Path) -> None:
    training = TrainingSession(tmp_path / "training")
    pushing = sync(training.runs)
    for frame in (16, 32, 48):
        training.train_to(frame)
        assert pushing.push()
    assert not pushing.push() and not buckets.repos
    folders = {path.split("/")[4] for path in buckets.buckets[NAME] if "/checkpoints/" in path}
    assert folders == {"000000000032", "000000000048"}
    elsewhere = sync(tmp_path / "elsewhere")
    assert elsewhere.pull() == [SESSION]
    pulled = SessionDir(tmp_path / "elsewhere" / SESSION)
    assert pulled.metrics.read_bytes() == training.directory.metrics.read_bytes()
    assert checkpoint_frames(pulled.checkpoints) == [48, 32]
    assert rows(load_checkpoint(pulled.checkpoints)) == list(range(48))
    assert not elsewhere.push()


def test_what_is_here_is_not_downloaded_again(buckets: Hub, tmp_path: Path) -> None:
    training = TrainingSession(tmp_path / "training")
    training.train_to(16)
    sync(training.runs).push()
    sync(tmp_path / "elsewhere").pull()
    before = len(buckets.requests)
    assert sync(tmp_path / "elsewhere").pull() == [SESSION]
    assert not [path for _, path in buckets.requests[before:] if "/resolve/" in path]


def test_a_reader_always_finds_a_complete_checkpoint(buckets: Hub, tmp_path: Path) -> None:
    """A bucket has no commits: metrics are written first, old checkpoints are deleted last."""
    training = TrainingSession(tmp_path / "training")
    pushing = sync(training.runs)
    for frame in (16, 32):
        training.train_to(frame)
        pushing.push()
    buckets.bucket_log.clear()
    training.train_to(48)
    pushing.push()
    kinds = ["metrics" if "checkpoints" not in path else type for type, path in buckets.bucket_log]
    assert kinds == sorted(kinds, key=["metrics", "addFile", "deleteFile"].index) and "deleteFile" in kinds


@pytest.mark.parametrize(
    ("step", "failure"),
    [("POST .*/batch", 503), ("GET .*/tree", 500), ("POST .*/paths-info", 429), ("HEAD .*/resolve/", 502)],
)
def test_transient_failures_are_retried(buckets: Hub, tmp_path: Path, step: str, failure: int, quick: None) -> None:
    training = TrainingSession(tmp_path / "training")
    pushing = sync(training.runs)
    for frame in (16, 32):
        training.train_to(frame)
        pushing.push()
    buckets.failures.append((step, failure))
    training.train_to(48)
    pushing.push()
    assert sync(tmp_path / "elsewhere").pull() == [SESSION]
    loaded = load_checkpoint(SessionDir(tmp_path / "elsewhere" / SESSION).checkpoints)
    assert loaded is not None and loaded.frame == 48 and not buckets.failures


def test_a_server_without_buckets_has_a_dataset_repository(buckets: Hub) -> None:
    buckets.has_buckets = False
    store = LiveStore(NAME, SHORT)
    assert store.files([SESSION]).files == {}
    store.create()
    assert isinstance(store.store, SquashedRepository) and buckets.repo(NAME).private and not buckets.buckets


def test_a_repository_that_exists_is_used_further(buckets: Hub, tmp_path: Path) -> None:
    Repository(NAME).create()
    assert isinstance(LiveStore(NAME).store, SquashedRepository)
    Bucket("me/other").create()
    assert isinstance(LiveStore("me/other").store, Bucket)


def test_the_client_without_xet_uses_a_repository(hub: Hub) -> None:
    assert isinstance(LiveStore(NAME).store, SquashedRepository)


def test_the_history_of_a_repository_is_squashed(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "COMMITS_PER_SQUASH", 3)
    training = TrainingSession(tmp_path / "training")
    pushing = sync(training.runs)
    for frame in range(16, 16 * 7, 16):
        training.train_to(frame)
        pushing.push()
    assert len(hub.repo(NAME).commits) <= 3
    sync(tmp_path / "elsewhere").pull()
    loaded = load_checkpoint(SessionDir(tmp_path / "elsewhere" / SESSION).checkpoints)
    assert loaded is not None and loaded.frame == 96


def test_a_pull_during_which_the_history_is_squashed(hub: Hub, tmp_path: Path) -> None:
    """The commit that was listed is gone before its files are read."""
    training = TrainingSession(tmp_path / "training")
    training.train_to(16)
    sync(training.runs).push()

    class Squashed(SquashedRepository):
        def files(self, folders):  # type: ignore[no-untyped-def]
            listing = super().files(folders)
            if len(hub.repo(NAME).commits) > 1:
                self.squash()
            return listing

    elsewhere = Sync(Squashed(NAME, SHORT), tmp_path / "elsewhere", [SESSION])
    assert elsewhere.pull() == [SESSION]


def test_a_checkpoint_with_a_tag_is_kept(buckets: Hub, tmp_path: Path) -> None:
    training = TrainingSession(tmp_path / "training")
    training.train_to(16)
    save_checkpoint(training.directory.checkpoints, 16, {"weights": np.ones(2)}, tag="best")
    sync(training.runs).push()
    sync(tmp_path / "elsewhere").pull(checkpoints=False)
    pulled = SessionDir(tmp_path / "elsewhere" / SESSION)
    assert checkpoint_frames(pulled.checkpoints) == [] and load_checkpoint(pulled.checkpoints, tag="best") is not None
