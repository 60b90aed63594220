"""A project of one's own, written by an installed wheel, outside this repository, runs as its README says."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT, Project


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory into which a freshly built wheel was installed, and nothing else."""
    built = tmp_path_factory.mktemp("wheel")
    source = built / "source"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "rldsl", source / "rldsl", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(built), str(source)]
    ran = subprocess.run(build, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (file,) = built.glob("rldsl-*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(built / "site"),
    ]
    subprocess.run([*pip, str(file)], check=True)
    return built / "site"


class Installed:
    """Commands that see the wheel before the source tree."""

    def __init__(self, wheel: Path, root: Path) -> None:
        self.wheel = wheel
        self.root = root
        self.environment = {**os.environ, "PYTHONPATH": str(wheel), "COLUMNS": "160"}

    def python(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=cwd or self.root, env=self.environment, capture_output=True, text=True, check=False
        )

    def rldsl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python(str(self.wheel / "bin" / "rldsl"), *arguments)


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Installed:
    return Installed(wheel, tmp_path)


def test_the_wheel_is_what_runs(installed: Installed) -> None:
    ran = installed.python("-c", "import rldsl; print(rldsl.__file__)")
    assert Path(ran.stdout.strip()) == installed.wheel / "rldsl" / "__init__.py"


def test_the_wheel_holds_what_an_installation_needs(installed: Installed) -> None:
    package = installed.wheel / "rldsl"
    assert (package / "py.typed").exists()
    assert (package / "cli" / "templates" / "experiment.py.txt").exists()
    assert not list(installed.wheel.glob("tests*"))


def test_a_new_project_runs_as_its_readme_says(installed: Installed) -> None:
    made = installed.rldsl("new", "proj")
    assert made.returncode == 0, made.stderr
    project = installed.root / "proj"
    readme = (project / "README.md").read_text()
    commands = [shlex.split(line, comments=True) for line in readme.splitlines() if line.startswith("python ")]
    assert len(commands) >= 4
    for command in commands:
        ran = installed.python(*command[1:], cwd=project)
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    sessions = list(project.glob("runs/*/*/*/metrics.csv"))
    assert sessions
    assert all('"event": "done"' in path.with_name("journal.jsonl").read_text() for path in sessions)


def test_a_new_project_is_never_written_over_another(project: Project) -> None:
    (project.root / "README.md").write_text("mine")
    ran = project.rldsl("new", ".")
    assert ran.returncode == 2
    assert ran.stderr == "error: . has README.md already; nothing was written\n"
    assert project.files() == {"README.md"}
    assert (project.root / "README.md").read_text() == "mine"
    assert project.rldsl("new", "other").returncode == 0
    assert "runs/" in (project.root / "other" / ".gitignore").read_text().splitlines()
