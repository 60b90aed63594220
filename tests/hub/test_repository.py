"""The real client against a Hub server on this machine: commits, downloads, retries and errors."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError, with_retries
from tests.hub.loopback import DROP, TOKEN, Hub

NAME = "me/results"
SHORT = (0.01, 0.01, 0.01)


@pytest.fixture
def repository(hub: Hub) -> Repository:
    repository = Repository(NAME, SHORT)
    repository.create()
    return repository


def write(root: Path, **files: str) -> dict[str, Path]:
    paths = {}
    for name, text in files.items():
        path = root / name
        path.write_text(text)
        paths[f"a/b/{name}.{'safetensors' if name.startswith('large') else 'json'}"] = path
    return paths


def test_files_are_committed_at_once_and_can_be_downloaded(hub: Hub, repository: Repository, tmp_path: Path) -> None:
    repository.commit(write(tmp_path, small="1", large="22"), [], "message")
    assert len(hub.repo(NAME).written) == 2
    listing = repository.files(["a/b"])
    assert {path: entry.size for path, entry in listing.files.items()} == {
        "a/b/small.json": 1,
        "a/b/large.safetensors": 2,
    }
    for path in listing.files:
        got = repository.download(path, listing.revision, tmp_path / "back")
        assert got.read_bytes() == hub.repo(NAME).files[path]


def test_the_repository_is_created_once_and_private(hub: Hub, repository: Repository) -> None:
    repository.create()
    requests = [body for (_, path), body in zip(hub.requests, hub.bodies, strict=True) if path.endswith("/create")]
    assert len(requests) == 2
    assert all(b'"private"' in body for body in requests)
    assert len(hub.repo(NAME).commits) == 1


COMMIT, OTHERS = "POST /api/datasets/.*/commit/", ("POST .*/preupload/", "PUT /large/", "POST .*/batch")
WRITING = [(COMMIT, failure) for failure in (500, 503, 429, 412, 409, DROP)] + [
    (step, failure) for step in OTHERS for failure in (500, DROP)
]


@pytest.mark.parametrize(("step", "failure"), WRITING)
def test_transient_errors_of_a_commit_are_retried(
    hub: Hub, repository: Repository, tmp_path: Path, step: str, failure: int, quick: None
) -> None:
    hub.failures.append((step, failure))
    repository.commit(write(tmp_path, small="1", large="22"), [], "message")
    assert set(hub.repo(NAME).files) == {".gitattributes", "a/b/small.json", "a/b/large.safetensors"}
    assert not hub.failures


def test_a_commit_whose_response_was_lost_is_not_repeated(hub: Hub, repository: Repository, tmp_path: Path) -> None:
    repository.commit(write(tmp_path, old="0"), [], "message")
    hub.failures.append((COMMIT, DROP))
    repository.commit(write(tmp_path, small="1"), ["a/b/old.json"], "message")
    assert set(hub.repo(NAME).files) == {".gitattributes", "a/b/small.json"}
    assert len(hub.repo(NAME).commits) == 3


@pytest.mark.parametrize("failure", [500, DROP])
@pytest.mark.parametrize(
    "step", ["GET /api/datasets/.*/tree", r"GET /api/datasets/me/results$", "HEAD .*", "GET .*/resolve/"]
)
def test_transient_errors_of_reads_are_retried(
    hub: Hub, repository: Repository, tmp_path: Path, step: str, failure: int, quick: None
) -> None:
    repository.commit(write(tmp_path, large="22"), [], "message")
    hub.failures.append((step, failure))
    listing = repository.files(["a/b"])
    got = repository.download("a/b/large.safetensors", listing.revision, tmp_path / "back")
    assert got.read_text() == "22"
    assert not hub.failures


def test_an_error_that_persists_is_raised(hub: Hub, repository: Repository, tmp_path: Path, quick: None) -> None:
    hub.failures += [(COMMIT, 500)] * 4
    with pytest.raises(HubError, match="cannot write to the dataset repository me/results"):
        repository.commit(write(tmp_path, small="1"), [], "message")


def test_an_unreachable_server_is_retried(monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    waits: list[float] = []
    monkeypatch.setattr("rldsl.hub.retry.time.sleep", waits.append)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        with pytest.raises(HubError, match="cannot create the dataset repository"):
            Repository(NAME, SHORT).create()
    assert len(waits) == len(SHORT)
    assert all(wait / 2 <= actual <= wait for wait, actual in zip(SHORT, waits, strict=True))


def test_other_exceptions_are_not_retried() -> None:
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        raise ValueError("a bug")

    with pytest.raises(HubError, match="cannot do it: a bug"):
        with_retries(call, "do it", SHORT)
    assert len(calls) == 1


def test_a_wrong_token_is_not_retried(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_SomebodyElse000000000000")
    with pytest.raises(HubError, match="the token in HF_TOKEN") as caught:
        Repository(NAME, SHORT).create()
    assert len([path for _, path in hub.requests if path.endswith("/create")]) == 1
    assert "SomebodyElse" not in str(caught.value)


def test_a_missing_repository_or_folder_is_empty(hub: Hub, repository: Repository) -> None:
    assert repository.files(["nowhere"]).files == {}
    assert Repository("me/nothing", SHORT).files(["a"]).files == {}


def test_the_token_is_sent_in_the_header_only(hub: Hub, repository: Repository, tmp_path: Path) -> None:
    repository.commit(write(tmp_path, small="1", large="22"), [], "message")
    assert all(TOKEN.encode() not in body for body in hub.bodies)
    assert all(TOKEN not in path for _, path in hub.requests)


def test_many_folders_are_listed_at_once(hub: Hub, repository: Repository, tmp_path: Path) -> None:
    repository.commit(write(tmp_path, small="1"), [], "message")
    before = len(hub.requests)
    assert "a/b/small.json" in repository.files([f"a/{name}" for name in "bcdefghijkl"]).files
    assert len([path for _, path in hub.requests[before:] if "/tree/" in path]) == 1
