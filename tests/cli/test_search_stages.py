"""`search` with stages, validation and the winner as a file, and `report` on it: real trainings of a few frames."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile, copytree

import pytest

from rldsl.cli.load import load
from rldsl.search.identity import search_id
from rldsl.store.search_dir import SearchDir, search_dirs
from tests.project import Project

EXPERIMENT = '''"""A staged search."""
from rldsl import PPO, Classic, experiment, log_uniform, main, uniform

cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).seeds(3)
ppo = cartpole.agent(PPO(rollout=32, minibatch=64, epochs=1)).frames(2048)
wide = ppo.search(gamma=uniform(0.9, 0.99), lr=log_uniform(1e-4, 1e-2)).asha(trials=6, grace=256, eta=2)
staged = wide.narrow(trials=2, seeds=2).validate(1)

if __name__ == "__main__":
    main(ppo, staged)
'''


class Searched(Project):
    """A project whose search has run."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.write(EXPERIMENT)
        self.ran = self.python("exp.py", "search", "--write", "tuned.py")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return Searched(tmp_path_factory.mktemp("staged"))


def test_every_stage_runs_and_the_winner_is_written(searched: Searched) -> None:
    ran = searched.ran
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    shown = ran.stdout
    wide, narrow = shown.index("cartpole/ppo-search  6 trials"), shown.index("cartpole/ppo-search-narrow  2 trials")
    assert wide < narrow < shown.index("current settings")
    assert [one.path.name.rpartition("-")[0] for one in search_dirs(searched.root / "runs")] == [
        "cartpole-ppo-search",
        "cartpole-ppo-search-narrow",
    ]
    written = searched.root / "tuned.py"
    assert written.exists() == (ran.returncode == 0)
    if written.exists():
        (tuned,) = load(written)
        assert tuned.name == "cartpole/ppo" and tuned.search is None and list(tuned.seeds) == [0, 1, 2]
        status = searched.python("tuned.py", "status")
        assert "3 sessions: 3 done" in status.stdout, status.stdout


def test_a_finished_search_does_nothing_again(searched: Searched) -> None:
    runs = searched.root / "runs"
    before = {path: path.read_bytes() for path in runs.rglob("journal.jsonl")}
    ran = searched.python("exp.py", "search", "--validate", "1")
    assert ran.returncode == 0, ran.stderr
    assert {path: path.read_bytes() for path in runs.rglob("journal.jsonl")} == before
    assert "current settings" in ran.stdout


def test_an_existing_file_is_not_overwritten(searched: Searched) -> None:
    (searched.root / "mine.py").write_text("precious")
    ran = searched.python("exp.py", "search", "--write", "mine.py")
    assert ran.returncode == 2 and "--force" in ran.stderr and "Traceback" not in ran.stderr
    assert (searched.root / "mine.py").read_text() == "precious"
    assert "takes a Python file" in searched.python("exp.py", "search", "--write", "mine.txt").stderr


def test_report_writes_a_page_figures_and_json(searched: Searched) -> None:
    ran = searched.python("exp.py", "report", "--only", "ppo-search", "--out", "found")
    assert ran.returncode == 0, ran.stderr
    assert "without early stopping" in ran.stdout and "not estimated" in ran.stdout
    names = {path.name for path in (searched.root / "found").iterdir()}
    for stage in ("cartpole-ppo-search", "cartpole-ppo-search-narrow"):
        assert {f"{stage}.html", f"{stage}.json", f"{stage}-parallel.png", f"{stage}-pareto.png"} <= names
    record = json.loads((searched.root / "found" / "cartpole-ppo-search.json").read_text())
    assert len(record["trials"]) == 6 and record["frames"] < record["frames_without_early_stopping"]


def test_without_a_search_report_says_so(searched: Searched, tmp_path: Path) -> None:
    ran = searched.python("exp.py", "report", "--only", "ppo-search", "--runs", str(tmp_path / "none"))
    assert ran.returncode == 0 and "no search with these settings has been started" in ran.stdout


def test_the_written_winner_is_audited_with_the_sessions_of_its_validation(searched: Searched) -> None:
    if not (searched.root / "tuned.py").exists():
        pytest.skip("the search found nothing better")
    audit = searched.rldsl("audit", "tuned.py", "--json")
    (result,) = json.loads(audit.stdout)
    assert result["experiment"] == "cartpole/ppo"
    assert not any("seed" in reason and "missing" in reason for reason in result["rejections"])
    assert "no experiment" not in result["rejections"] and "part of a search" not in str(result["rejections"])


@pytest.mark.parametrize("command", [("report", "runs", "--out", "all"), ("audit", "runs")])
def test_a_run_directory_has_a_line_for_each_search(searched: Searched, command: tuple[str, ...]) -> None:
    lines = [line for line in searched.rldsl(*command).stdout.splitlines() if "left out" in line or "rejected " in line]
    assert [line for line in lines if "-search" in line and "validation" not in line] == [
        "left out 6 trials of the search cartpole/ppo-search: they are not benchmark results",
        "left out 2 trials of the search cartpole/ppo-search-narrow: they are not benchmark results",
    ]
    assert not any("part of a search" in line for line in lines)


def test_searches_of_one_name_have_files_of_their_own(searched: Searched, tmp_path: Path) -> None:
    runs = copytree(searched.root / "runs", tmp_path / "runs")
    wide, _ = search_dirs(runs)
    budget = wide.experiment().budget.model_copy(update={"frames": 4096})
    longer = wide.experiment().model_copy(update={"budget": budget})
    other = SearchDir.create(runs, longer, search_id(longer))
    copyfile(wide.journal.path, other.journal.path)
    ran = searched.rldsl("report", runs, "--out", tmp_path / "out")
    assert ran.returncode == 1 and "not committed" in ran.stdout, "its ordinary sessions are no results"
    pages = {path.stem for path in (tmp_path / "out").glob("cartpole-ppo-search*.html")}
    assert pages == {wide.path.name, other.path.name, "cartpole-ppo-search-narrow"}
