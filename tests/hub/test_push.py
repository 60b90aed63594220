"""Sessions and results are pushed to a dataset repository: complete, only what changed, whatever fails."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldsl.hub import push as push_module
from rldsl.hub.checksums import parse_checksums
from rldsl.hub.index import read_index
from rldsl.hub.push import Describe, Push, Pushed
from rldsl.hub.repository import Repository
from rldsl.hub.retry import HubError
from rldsl.report.dataset_card import DatasetCard
from rldsl.store.runs import Runs
from tests.hub.loopback import DROP, TOKEN, Hub, Repo
from tests.hub.sessions import contents, directory_of, finished, undescribed
from tests.project import environment

NAME = "me/results"
COMMIT = "POST /api/datasets/.*/commit/"
RLDSL = str(Path(sys.executable).with_name("rldsl"))


def push(runs: Path, describe: Describe = undescribed, **options: Any) -> Pushed:
    job = Push(Repository(NAME, (0.01, 0.01)), runs, describe, **options)
    return job.run(sorted(Runs(runs).existing()))


def index_of(hub: Hub) -> dict[str, object]:
    return dict(read_index(hub.repo(NAME).files["index.jsonl"], NAME).rows)


def test_a_repository_has_sessions_with_checksums_index_tables_card_and_plots(hub: Hub, tmp_path: Path) -> None:
    sessions = finished(tmp_path)
    pushed = push(tmp_path, DatasetCard(NAME))
    files, directories = hub.repo(NAME).files, [directory_of(tmp_path, one) for one in sessions]
    assert pushed.sessions == directories and not pushed.refused
    assert hub.repo(NAME).private
    for directory, session in zip(directories, sessions, strict=True):
        local = contents(session.path)
        older = {name for name in local if name.startswith("checkpoints/000000005000/")}
        stored = {path.removeprefix(f"{directory}/"): files[path] for path in files if path.startswith(f"{directory}/")}
        sums = parse_checksums(stored.pop("SHA256SUMS").decode())
        assert stored == {name: data for name, data in local.items() if name not in older} and older
        assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in stored.items()}
    assert set(index_of(hub)) == set(directories)
    assert {"tables/runs.parquet", "tables/seeds.parquet", "README.md"} <= set(files)
    assert any(path.startswith("tables/curves/") for path in files)
    assert files[f"{directories[0].rpartition('/')[0]}/learning-curve.png"].startswith(b"\x89PNG")
    card = files["README.md"].decode()
    assert "| CartPole-v1 | cartpole/ppo | done | 110.0 |" in card


def test_only_changed_sessions_are_pushed_again(hub: Hub, tmp_path: Path) -> None:
    first, second = finished(tmp_path)
    push(tmp_path)
    before, calls = len(hub.repo(NAME).commits), len(hub.calls())
    assert push(tmp_path).unchanged == 2
    assert len(hub.repo(NAME).commits) == before and len(hub.calls()) - calls == 1
    second.log.write_text("another line\n")
    pushed = push(tmp_path)
    assert pushed.sessions == [directory_of(tmp_path, second)] and pushed.unchanged == 1
    touched = {path for path in hub.repo(NAME).written[-1] if path.startswith("cartpole-v1/")}
    assert touched == {f"{directory_of(tmp_path, second)}/{name}" for name in ("log.txt", "SHA256SUMS")}
    assert first.exists()


def test_another_machine_does_not_upload_what_is_there(hub: Hub, tmp_path: Path) -> None:
    finished(tmp_path / "a")
    push(tmp_path / "a")
    (tmp_path / "a" / ".hub" / "me--results.json").unlink()
    uploads = len(hub.uploads())
    assert push(tmp_path / "a").unchanged == 2
    assert len(hub.uploads()) == uploads


def test_a_pruned_checkpoint_is_removed(hub: Hub, tmp_path: Path) -> None:
    session, _ = finished(tmp_path)
    push(tmp_path)
    (session.checkpoints / "000000010000").rename(session.checkpoints / "000000010001")
    push(tmp_path)
    names = {path.split("/")[4] for path in hub.repo(NAME).files if "/seed-0/checkpoints/" in path}
    assert names == {"best", "000000010001"}


def test_best_only_leaves_out_what_is_needed_to_resume(hub: Hub, tmp_path: Path) -> None:
    finished(tmp_path)
    push(tmp_path, best_only=True)
    assert {path.split("/")[4] for path in hub.repo(NAME).files if "/checkpoints/" in path} == {"best"}


def test_commits_have_about_a_hundred_files(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_module, "FILES_PER_COMMIT", 20)
    for gamma in (0.9, 0.95, 0.99):
        finished(tmp_path, gamma)
    steps: list[tuple[int, int]] = []
    push(tmp_path, progress=lambda done, total, text: steps.append((done, total)))
    *data, last = hub.repo(NAME).written[1:]
    assert [len(touched) for touched in data] == [20, 20, 20, 12]
    assert "index.jsonl" in last and len(index_of(hub)) == 6
    assert steps == [(20, 72), (40, 72), (60, 72), (72, 72)]


FAILURES = [(step, failure) for step in (COMMIT, "GET .*/resolve/main/index") for failure in (412, 429, 500, 503, DROP)]


@pytest.mark.parametrize(("step", "failure"), FAILURES)
def test_transient_failures_lose_nothing(hub: Hub, tmp_path: Path, step: str, failure: int, quick: None) -> None:
    finished(tmp_path)
    hub.failures.append((step, failure))
    pushed = push(tmp_path)
    assert not hub.failures and not pushed.refused
    assert len(pushed.sessions) == len(index_of(hub)) == 2
    assert len([touched for touched in hub.repo(NAME).written if "index.jsonl" in touched]) == 1


def test_the_server_says_how_long_to_wait(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(tmp_path)
    waits: list[float] = []
    monkeypatch.setattr("rldsl.hub.retry.time.sleep", waits.append)
    hub.failures.append((COMMIT, 429))
    hub.failure_headers = {"Retry-After": "77"}
    push(tmp_path)
    hub.failures.append((COMMIT, 429))
    hub.failure_headers = {"RateLimit": '"api";r=0;t=55'}
    finished(tmp_path, 0.9)
    push(tmp_path)
    assert waits == [77.0, 55.0]


def test_two_publishers_at_once_lose_nothing(hub: Hub, tmp_path: Path) -> None:
    """The second commits between the first one's reading of the index and its commit."""
    finished(tmp_path / "a", 0.9)
    finished(tmp_path / "b", 0.99)
    Repository(NAME).create()

    class Late(DatasetCard):
        def __call__(self, changes: object) -> dict[str, bytes]:
            if not hub.repo(NAME).files.keys() & {"index.jsonl"}:
                push(tmp_path / "b", DatasetCard(NAME))
            return super().__call__(changes)  # type: ignore[arg-type]

    Push(Repository(NAME), tmp_path / "a", Late(NAME)).run(sorted(Runs(tmp_path / "a").existing()))
    assert len(index_of(hub)) == 4
    assert "| CartPole-v1 | cartpole/ppo | done | 110.0 |" in hub.repo(NAME).files["README.md"].decode()


def test_a_file_that_the_storage_refuses_does_not_block_the_rest(hub: Hub, tmp_path: Path, quick: None) -> None:
    first, _ = finished(tmp_path)
    refused = f"{directory_of(tmp_path, first)}/checkpoints/best/arrays.safetensors"
    digest = hashlib.sha256((tmp_path / refused).read_bytes()).hexdigest()
    hub.always.append((f"PUT /large/{digest}", 400))
    pushed = push(tmp_path)
    assert [refused in sentence for sentence in pushed.refused] == [True]
    assert refused not in hub.repo(NAME).files and len(pushed.sessions) == 2
    sums = parse_checksums(hub.repo(NAME).files[f"{directory_of(tmp_path, first)}/SHA256SUMS"].decode())
    assert "checkpoints/best/arrays.safetensors" not in sums and "metrics.csv" in sums
    hub.always.clear()
    assert push(tmp_path).sessions == [directory_of(tmp_path, first)]
    assert refused in hub.repo(NAME).files


def test_a_file_that_the_hub_refuses_does_not_block_the_rest(hub: Hub, tmp_path: Path) -> None:
    """A commit is refused as a whole: the file is found by committing parts of it."""
    first, second = finished(tmp_path)
    second.log.write_text("poison\n")
    hub.refuse = lambda files: any(data == b"poison\n" for data in files.values())
    pushed = push(tmp_path)
    poison = f"{directory_of(tmp_path, second)}/log.txt"
    assert len(pushed.refused) == 1 and poison in pushed.refused[0]
    assert poison not in hub.repo(NAME).files
    assert f"{directory_of(tmp_path, second)}/metrics.csv" in hub.repo(NAME).files
    assert set(index_of(hub)) == {directory_of(tmp_path, one) for one in (first, second)}


@pytest.mark.parametrize(("failure", "sentence"), [(401, "does not accept the token"), (403, "is not allowed to")])
def test_a_refused_token_is_one_sentence(hub: Hub, tmp_path: Path, failure: int, sentence: str) -> None:
    finished(tmp_path)
    hub.always.append((COMMIT, failure))
    with pytest.raises(HubError, match=sentence) as caught:
        push(tmp_path)
    assert "\n" not in str(caught.value) and TOKEN not in str(caught.value)
    assert len([call for call in hub.calls() if "/commit/" in call]) == 1


def test_files_that_look_like_secrets_are_withheld_and_listed(hub: Hub, tmp_path: Path) -> None:
    session, _ = finished(tmp_path)
    session.log.write_text(f"export HF_TOKEN={TOKEN}\n")
    pushed = push(tmp_path)
    (sentence,) = pushed.refused
    assert f"{directory_of(tmp_path, session)}/log.txt" in sentence and TOKEN not in sentence
    assert not [path for path, data in hub.repo(NAME).files.items() if TOKEN.encode() in data]
    assert len(index_of(hub)) == 2


def test_a_killed_push_is_continued(hub: Hub, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for gamma in (0.9, 0.91, 0.92, 0.93, 0.94):
        finished(runs, gamma)
    process = start_push(tmp_path)
    hub.on_commit = killing(process, after=1)
    assert process.wait(60) == -signal.SIGKILL
    hub.on_commit = lambda repo: None
    assert "index.jsonl" not in hub.repo(NAME).files and len(hub.repo(NAME).files) > 90
    uploaded = hub.uploads()
    again = start_push(tmp_path)
    said, _ = again.communicate(timeout=60)
    assert again.returncode == 0 and "10 sessions pushed" in said, said
    assert len(index_of(hub)) == 10
    assert not set(uploaded) & set(hub.uploads()[len(uploaded) :])


def start_push(folder: Path) -> subprocess.Popen[str]:
    ours = {name: os.environ[name] for name in ("HF_ENDPOINT", "HF_TOKEN", "HF_HOME", "HF_HUB_DISABLE_XET")}
    return subprocess.Popen(
        [RLDSL, "push", "--repo", NAME],
        cwd=folder,
        env={**environment(), **ours},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def killing(process: subprocess.Popen[str], after: int) -> Callable[[Repo], None]:
    def on_commit(repo: Repo) -> None:
        if len(repo.commits) > after:
            process.kill()

    return on_commit


def test_tables_load_with_datasets(hub: Hub, tmp_path: Path) -> None:
    """The real package, in a process of its own because it reads HF_ENDPOINT when it is imported."""
    finished(tmp_path / "runs")
    push(tmp_path / "runs", DatasetCard(NAME))
    finished(tmp_path / "runs", 0.9, (50.0, 60.0, 70.0))
    push(tmp_path / "runs", DatasetCard(NAME))
    program = (
        "import json\nfrom datasets import load_dataset\n"
        f"tables = {{name: load_dataset('{NAME}', name)['train'] for name in ('runs', 'seeds', 'curves')}}\n"
        "facts = {name: [len(table), table.column_names] for name, table in tables.items()}\n"
        "print(json.dumps([facts, tables['runs'].to_list(), tables['curves'][0]]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    facts, runs, point = json.loads(done.stdout)
    assert {name: rows for name, (rows, _) in facts.items()} == {"runs": 2, "seeds": 5, "curves": 1000}
    assert sorted((run["n"], run["score"], run["scores"]) for run in runs) == [
        (2, 110.0, [100.0, 120.0]),
        (3, 60.0, [50.0, 60.0, 70.0]),
    ]
    assert point["frame"] == 50 and {"session", "trial", "seed", "episode_return"} <= point.keys()
