"""Sessions are pulled from a dataset repository that anybody may have written: verified, or refused in one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldsl.hub.checksums import SHA256SUMS, checksums_text, parse_checksums
from rldsl.hub.index import INDEX, read_index
from rldsl.hub.pull import Pull, Pulled
from rldsl.hub.push import Push
from rldsl.hub.remote_paths import refusal, sort_out
from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError
from rldsl.store.checkpoint import load_checkpoint, save_checkpoint
from rldsl.store.claim import hold
from rldsl.store.errors import StoreError
from rldsl.store.metrics import MetricsWriter
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from tests.hub.loopback import DROP, Hub
from tests.hub.sessions import contents, directory_of, finished, undescribed
from tests.report.finished import COLUMNS

NAME = "me/results"


class Shared:
    """A repository with two finished sessions, and what happens when they are pulled elsewhere."""

    def __init__(self, hub: Hub, tmp_path: Path) -> None:
        self.hub, self.runs, self.elsewhere = hub, tmp_path / "runs", tmp_path / "elsewhere"
        self.sessions = finished(self.runs)
        self.directories = [directory_of(self.runs, one) for one in self.sessions]
        self.push()

    def push(self) -> None:
        Push(Repository(NAME, ()), self.runs, undescribed).run(sorted(Runs(self.runs).existing()))

    def pull(self, **options: Any) -> Pulled:
        return Pull(Repository(NAME, (0.01,)), self.elsewhere, **options).run()

    def tamper(self, change: Callable[[dict[str, bytes]], object]) -> None:
        """Changes files of the repository behind the back of `push`."""
        files = dict(self.hub.repo(NAME).files)
        change(files)
        self.hub.repo(NAME).commit(files, set())

    def forge(self, name: str, data: bytes | None = None, session: int = 0) -> None:
        """Adds or replaces a file of a session, with a fitting checksum and index."""
        directory = self.directories[session]

        def change(files: dict[str, bytes]) -> None:
            sums = parse_checksums(files[f"{directory}/{SHA256SUMS}"].decode())
            if data is not None:
                files[f"{directory}/{name}"] = data
            sums[name] = hashlib.sha256(data or b"").hexdigest()
            files[f"{directory}/{SHA256SUMS}"] = checksums_text(sums).encode()
            index = read_index(files[INDEX], NAME)
            digest = hashlib.sha256(files[f"{directory}/{SHA256SUMS}"]).hexdigest()
            row = index.rows[directory]
            index.rows[directory] = replace(row, digest=digest, files=tuple({*row.files, name}))
            files[INDEX] = index.data()

        self.tamper(change)


@pytest.fixture
def repo(hub: Hub, tmp_path: Path) -> Shared:
    return Shared(hub, tmp_path)


def test_a_pulled_session_is_what_was_pushed(repo: Shared) -> None:
    pulled = repo.pull()
    assert pulled.sessions == repo.directories and not pulled.refused
    for directory, session in zip(repo.directories, repo.sessions, strict=True):
        local = contents(session.path)
        kept = {name: data for name, data in local.items() if not name.startswith("checkpoints/000000005000/")}
        assert contents(repo.elsewhere / directory) == kept
        assert SessionDir(repo.elsewhere / directory).state() == "done"
    assert repo.pull().unchanged == 2


def test_reading_a_public_repository_needs_no_token(repo: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="HF_TOKEN is not set"):
        repo.pull()
    repo.hub.repo(NAME).private = False
    assert repo.pull().sessions == repo.directories


def test_best_only_and_then_the_rest(repo: Shared) -> None:
    repo.pull(best_only=True)
    checkpoints = SessionDir(repo.elsewhere / repo.directories[0]).checkpoints
    assert load_checkpoint(checkpoints) is None and load_checkpoint(checkpoints, tag="best") is not None
    assert repo.pull(best_only=True).unchanged == 2
    repo.pull()
    loaded = load_checkpoint(checkpoints)
    assert loaded is not None and loaded.frame == 10_000


@pytest.mark.parametrize("failure", [500, 429, DROP])
@pytest.mark.parametrize("step", ["HEAD .*/metrics.csv", "GET .*/arrays.safetensors", "GET .*/index.jsonl"])
def test_transient_failures_lose_nothing(repo: Shared, step: str, failure: int, quick: None) -> None:
    repo.hub.failures.append((step, failure))
    pulled = repo.pull()
    assert pulled.sessions == repo.directories and not repo.hub.failures


def test_a_session_that_is_ahead_is_kept(repo: Shared) -> None:
    repo.pull()
    local = SessionDir(repo.elsewhere / repo.directories[0])
    MetricsWriter(local.metrics, COLUMNS).write({"frame": 20_000, "seconds": 1.0, "episode_return": 1.0})
    before = contents(local.path)
    pulled = repo.pull()
    assert pulled.ahead == [repo.directories[0]] and contents(local.path) == before


def test_a_session_that_is_being_trained_here_is_not_touched(repo: Shared) -> None:
    repo.pull()
    local = SessionDir(repo.elsewhere / repo.directories[0])
    local.metrics.write_text("frame\n")
    with hold(local.lock, local.alive):
        pulled = repo.pull()
    assert local.metrics.read_text() == "frame\n"
    assert pulled.refused == [f"refused {repo.directories[0]}: a process is training it here"]


def test_a_changed_file_is_refused_and_the_rest_continues(repo: Shared) -> None:
    directory, other = repo.directories
    repo.tamper(lambda files: files.update({f"{directory}/metrics.csv": b"frame,episode_return\n1,500\n"}))
    pulled = repo.pull()
    assert pulled.refused == [f"refused {directory}: metrics.csv does not have its checksum"]
    assert pulled.sessions == [other] and not (repo.elsewhere / directory).exists()


def test_changed_checksums_are_refused(repo: Shared) -> None:
    directory, other = repo.directories
    repo.tamper(lambda files: files.update({f"{directory}/{SHA256SUMS}": b"0" * 64 + b"  metrics.csv\n"}))
    pulled = repo.pull()
    assert pulled.sessions == [other]
    assert pulled.refused == [f"refused {directory}: SHA256SUMS does not have the checksum that the index says"]


def test_a_missing_file_is_refused(repo: Shared) -> None:
    directory, other = repo.directories
    repo.tamper(lambda files: files.pop(f"{directory}/journal.jsonl"))
    pulled = repo.pull()
    assert pulled.sessions == [other] and len(pulled.refused) == 1


def test_a_record_of_another_session_is_refused(repo: Shared) -> None:
    directory, other = repo.directories
    repo.forge("session.json", repo.sessions[1].session.read_bytes())
    pulled = repo.pull()
    assert pulled.sessions == [other]
    assert len(pulled.refused) == 1 and pulled.refused[0].startswith(f"refused {directory}: session.json ")


def test_a_record_with_other_settings_is_refused(repo: Shared) -> None:
    record = json.loads(repo.sessions[0].session.read_bytes())
    record["trial"]["agent"]["gamma"] = 0.5
    repo.forge("session.json", json.dumps(record).encode())
    pulled = repo.pull()
    assert pulled.sessions == [repo.directories[1]]
    assert "session.json was changed" in pulled.refused[0]


HOSTILE = {
    "../evil.json": "it leaves its directory",
    "checkpoints/../../evil.json": "it leaves its directory",
    "a\0b.json": "it contains NUL",
    "x\\evil.json": "it is an absolute path",
    "evil.py": "it is no file of a session",
    "checkpoints/000000010000/evil.pkl": "it is no file of a session",
    "METRICS.csv": "it is no file of a session",
    ".bashrc": "it is no file of a session",
    "lock": "it is no file of a session",
    f"{'x' * 300}.json": "it has a name of more than 255 bytes",
    "tb/events.Out": None,
    "tb/events.out": "it differs from",
}


def test_hostile_paths_are_refused_in_a_line_each(repo: Shared) -> None:
    for name in HOSTILE:
        repo.forge(name, b"evil")
    pulled = repo.pull()
    assert len(pulled.refused) == len([reason for reason in HOSTILE.values() if reason])
    for name, reason in HOSTILE.items():
        shown = name.replace("\0", "\\x00").replace("x\\evil", "x\\\\evil")[:20]
        lines = [line for line in pulled.refused if f"/seed-0/{shown}" in line]
        assert not reason or (len(lines) == 1 and reason in lines[0]), name
    assert all("\n" not in line and "\0" not in line for line in pulled.refused)
    assert pulled.sessions == repo.directories
    written = {path.name for path in repo.elsewhere.parent.rglob("*")}
    assert not written & {"evil.json", "evil.py", "evil.pkl", ".bashrc", "events.out", "METRICS.csv"}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "C:/x/y-1/seed-0/log.txt", "a/../b-1/seed-0/log.txt", "a//b", "README.md"]
)
def test_paths_that_are_no_files_of_a_session(path: str) -> None:
    assert refusal(path) is not None


def test_directories_that_differ_only_in_case() -> None:
    accepted, refused = sort_out(["env/ppo-1/seed-0/log.txt", "ENV/ppo-1/seed-0/log.txt"])
    assert accepted == ["ENV/ppo-1/seed-0/log.txt"] and len(refused) == 1


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_symbolic_link_does_not_lead_out_of_the_run_directory(repo: Shared, tmp_path: Path, depth: int) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    parts = [*repo.directories[0].split("/"), "checkpoints"][:depth]
    link = repo.elsewhere.joinpath(*parts)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    pulled = repo.pull()
    assert not list(outside.iterdir())
    assert any("a symbolic link leads out of the run directory" in line for line in pulled.refused)


def test_a_damaged_index_is_one_sentence(repo: Shared) -> None:
    for data in (
        b"",
        b"{}\n",
        b"[1]\n",
        b"\xff\xfe",
        b'{"format": "rldsl.index", "benchmark": ""}\n{"directory": 1}\n',
    ):
        repo.tamper(lambda files, data=data: files.update({INDEX: data}))
        with pytest.raises(StoreError, match="is damaged") as caught:
            repo.pull()
        assert "\n" not in str(caught.value)


def test_an_index_cannot_name_other_directories(repo: Shared) -> None:
    def change(files: dict[str, bytes]) -> None:
        files[INDEX] = files[INDEX].replace(b'"directory": "cartpole-v1/', b'"directory": "../')

    repo.tamper(change)
    with pytest.raises(StoreError, match="is damaged"):
        repo.pull()


def test_a_repository_without_an_index_and_none_at_all(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="there is no dataset repository me/nothing"):
        Pull(Repository("me/nothing"), tmp_path)
    Repository("me/nothing").create()
    with pytest.raises(StoreError, match=r"has no index.jsonl: `rldsl push` writes it"):
        Pull(Repository("me/nothing"), tmp_path)


def test_a_pulled_session_goes_on_and_is_pushed_back(repo: Shared) -> None:
    repo.pull()
    local = SessionDir(repo.elsewhere / repo.directories[0])
    save_checkpoint(local.checkpoints, 12_000, {"weights": np.zeros(3)})
    Push(Repository(NAME, ()), repo.elsewhere, undescribed).run(repo.directories)
    names = {path.split("/")[4] for path in repo.hub.repo(NAME).files if "/seed-0/checkpoints/" in path}
    assert names == {"best", "000000012000"}
