"""From sessions to a benchmark table: `audit`, `results add`, `report` and `results check`, as users run them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import copytree

import pytest

from tests.project import Project

FILE = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).seeds(3).log_every(20).frames(4000)
    baseline = cartpole.agent(Random()).target(20)
    other = cartpole.agent(Random()).named("cartpole/untrained").frames(8000)

    if __name__ == "__main__":
        main(baseline, other)
"""


def git(project: Project, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=project.root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A clean repository with one experiment that was trained and one that was not."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.write(FILE, "experiments/classic/cartpole.py")
    project.write("/runs/\n__pycache__/\n", ".gitignore")
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "experiment")
    ran = project.python("experiments/classic/cartpole.py", "--only", "random")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return project


def test_from_sessions_to_a_table(trained: Project) -> None:
    audit = trained.rldsl("audit", "experiments/classic/cartpole.py")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    assert audit.stdout.splitlines() == [
        "accepted cartpole/random",
        "1 result: 1 accepted, 0 rejected",
        "1 experiment without a result",
    ]

    added = trained.rldsl("results", "add", "experiments/classic/cartpole.py")
    assert added.returncode == 0, added.stdout + added.stderr
    assert added.stdout.startswith("added results/classic/cartpole-random.json: ")
    (file,) = trained.root.glob("results/*/*.json")
    assert file.stat().st_size < 3 * 30_000
    assert json.loads(file.read_text())["experiment"] == "cartpole/random"
    again = trained.rldsl("results", "add", "experiments/classic/cartpole.py")
    assert again.stdout.startswith("unchanged results/classic/cartpole-random.json")

    unwritten = trained.rldsl("results", "check")
    assert unwritten.returncode == 1
    assert "BENCHMARKS.md does not match the results" in unwritten.stdout

    report = trained.rldsl("report", "results")
    assert report.returncode == 0, report.stderr
    page = (trained.root / "BENCHMARKS.md").read_text()
    assert "| CartPole-v1 | random policy | cartpole/random | solved |" in page
    assert "- CartPole-v1: cartpole/untrained" in page
    names = {path.name for path in (trained.root / "results").glob("**/*") if path.is_file()}
    assert names == {"benchmarks.csv", "benchmarks.json", "report.html", "cartpole-random.json"}
    assert trained.rldsl("results", "check").stdout == "1 result, 1 missing experiment: tables and plots match\n"


def test_sessions_can_be_added_by_id_or_plan(trained: Project) -> None:
    id = trained.sessions[0].parent.name.rpartition("-")[2]
    by_id = trained.rldsl("results", "add", f"{id}-s1", "--results", "by-id", "--experiments", "experiments")
    assert by_id.stdout.startswith("added by-id/classic/cartpole-random.json"), by_id.stderr
    assert len(json.loads((trained.root / "by-id/classic/cartpole-random.json").read_text())["sessions"]) == 3
    trained.rldsl("plan", "experiments/classic/cartpole.py", "--only", "random", "--out", "plan.json")
    by_plan = trained.rldsl("results", "add", "--plan", "plan.json", "--results", "by-plan")
    assert by_plan.stdout.startswith("added by-plan/classic/cartpole-random.json"), by_plan.stderr
    files = [trained.root / name / "classic/cartpole-random.json" for name in ("by-id", "by-plan")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_report_of_a_run_directory_and_of_a_plan(trained: Project) -> None:
    trained.rldsl("plan", "experiments/classic/cartpole.py", "--only", "random", "--out", "plan.json")
    for number, source in enumerate(("runs", "plan.json")):
        report = trained.rldsl("report", source, "--out", f"out-{number}")
        assert report.returncode == 0, report.stderr
        assert "cartpole/random by seed  0: " in report.stdout
        assert (trained.root / f"out-{number}" / "report.html").exists()
    rows = [json.loads((trained.root / f"out-{n}/benchmarks.json").read_text())["rows"] for n in (0, 1)]
    assert rows[0] == rows[1]


def test_what_does_not_belong_is_refused(trained: Project) -> None:
    some = trained.rldsl("audit", "experiments/classic/cartpole.py", "--seeds", "4")
    assert some.returncode == 1
    assert "rejected cartpole/random: seed 3 is missing" in some.stdout
    report = trained.rldsl("report", "experiments/classic/cartpole.py", "--seeds", "4", "--out", "nothing")
    assert report.returncode == 1 and "rejected cartpole/random: seed 3 is missing" in report.stdout
    assert not (trained.root / "nothing").exists()
    none = trained.rldsl("results", "add", "experiments/classic/cartpole.py", "--only", "untrained")
    assert (none.returncode, none.stderr) == (2, "error: no session of these experiments is in runs\n")
    unknown = trained.rldsl("results", "add", "0123456789ab-s0")
    assert unknown.returncode == 2 and "no session in runs matches" in unknown.stderr
    assert trained.rldsl("results", "add").stderr.startswith("error: `rldsl results add` needs an experiment file")
    assert trained.rldsl("results", "remove").stderr == "error: `rldsl results` has add and check, not remove\n"
    empty = trained.rldsl("report", "experiments")
    assert empty.stderr == "error: experiments contains neither results nor sessions\n"


def test_references_of_an_environment(project: Project) -> None:
    shown = project.rldsl("references", "Hopper-v5").stdout
    assert "CleanRL" in shown and "Tianshou" in shown and "SLM-Lab" in shown
    data = json.loads(project.rldsl("references", "CartPole-v1", "--json").stdout)
    assert data["targets"] == [{"env": "CartPole-v1", "target": 400.0, "source": "SLM-Lab v5 96be3938"}]
    assert project.rldsl("references", "nothing").stderr.startswith("error: no published score")


def test_settings_that_were_changed_since_are_rejected(trained: Project, tmp_path: Path) -> None:
    changed = Project(tmp_path)
    changed.write(FILE.replace("frames(4000)", "frames(5000)"), "experiments/classic/cartpole.py")
    audit = trained.rldsl("audit", "runs", "--experiments", tmp_path / "experiments")
    assert audit.returncode == 1
    assert "rejected cartpole/random: the budget is 4,000 frames, the experiment has 5,000" in audit.stdout


def test_a_report_of_some_results_leaves_the_others_alone(trained: Project) -> None:
    added = trained.rldsl("results", "add", "experiments/classic/cartpole.py", "--results", "some/results")
    assert "no experiment has this name" not in added.stdout
    other = trained.rldsl("audit", "some/results", "--only", "untrained", "--experiments", "experiments")
    assert other.stdout == "0 results: 0 accepted, 0 rejected\n1 experiment without a result\n"
    report = trained.rldsl(
        "report", "some/results", "--only", "random", "--experiments", "experiments", "--out", "part"
    )
    assert report.returncode == 0, report.stderr
    assert "untrained" not in (trained.root / "part" / "BENCHMARKS.md").read_text()
    assert trained.rldsl("report", "some/results", "--only", "random", "--experiments", "experiments").returncode == 0
    assert not (trained.root / "some" / "BENCHMARKS.md").exists()
    assert (trained.root / "report" / "BENCHMARKS.md").exists()


def test_sessions_belong_to_the_experiments_with_their_settings_whatever_the_name(
    trained: Project, tmp_path: Path
) -> None:
    renamed = Project(tmp_path)
    file = renamed.write(FILE.replace('experiment("cartpole")', 'experiment("pole")'), "experiments/pole.py")
    for source, options in ((file, ()), ("runs", ("--experiments", file.parent))):
        audit = trained.rldsl("audit", source, *options)
        assert audit.returncode == 0, audit.stdout + audit.stderr
        assert audit.stdout.splitlines()[0] == "accepted pole/random"
        report = trained.rldsl("report", source, *options, "--out", tmp_path / "report")
        assert "pole/random by seed  0: " in report.stdout and "cartpole/random" not in report.stdout
    id = trained.sessions[0].parent.name.rpartition("-")[2]
    for number, source in enumerate((file, id)):
        folder = tmp_path / f"results-{number}"
        added = trained.rldsl("results", "add", source, "--results", folder, "--experiments", file.parent)
        assert added.returncode == 0, added.stdout + added.stderr
        assert json.loads((folder / "classic/pole-random.json").read_text())["experiment"] == "pole/random"


def test_without_experiment_files_sessions_keep_the_name_they_recorded(trained: Project, tmp_path: Path) -> None:
    copytree(trained.runs, tmp_path / "runs")
    audit = trained.rldsl("audit", tmp_path / "runs")
    assert audit.stdout.splitlines()[0] == "accepted cartpole/random", audit.stderr


def test_two_experiments_with_the_same_settings_share_their_sessions(trained: Project, tmp_path: Path) -> None:
    both = Project(tmp_path)
    both.write(FILE.replace(".frames(8000)", ""), "experiments/both.py")
    for source, options in (
        ("runs", ("--experiments", tmp_path / "experiments")),
        (tmp_path / "experiments/both.py", ()),
    ):
        audit = trained.rldsl("audit", source, *options)
        assert audit.stdout.splitlines()[:2] == ["accepted cartpole/random", "accepted cartpole/untrained"], (
            audit.stderr
        )


def test_a_source_or_run_directory_that_does_not_exist_is_named(trained: Project) -> None:
    for command in ("report", "audit"):
        missing = trained.rldsl(command, "nothere")
        assert missing.returncode == 2
        assert missing.stderr.startswith("error: there is no file or folder nothere, and no session in runs matches")
        without_runs = trained.rldsl(command, "nothere", "--runs", "gone")
        assert without_runs.stderr == "error: there is no file or folder nothere, and no run directory gone\n"
    note = "note: the run directory gone does not exist\n"
    file = "experiments/classic/cartpole.py"
    for arguments in (("report", file), ("audit", file), ("status", file), ("list",)):
        ran = trained.rldsl(*arguments, "--runs", "gone")
        assert (ran.returncode, ran.stderr) == (0, note), arguments
        assert trained.rldsl(*arguments).stderr == "", arguments
    assert json.loads(trained.rldsl("list", "--runs", "gone", "--json").stdout) == []
