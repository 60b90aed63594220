"""The digest of the code that a session depends on: what changes it, and what does not."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from rldsl import PPO, SAC, Atari, Classic, Gym
from rldsl.cli.load import load
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Trial
from rldsl.store import code_version
from rldsl.store.code_version import CodeVersions

PENDULUM = Classic("Pendulum-v1")
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hill_climbing.py"


def trial(agent: object = None, env: object = None) -> Trial:
    return Trial(agent=agent or PPO(), env=env or PENDULUM, budget=Budget(100_000))


def digest(file: Path | None, one: Trial | None = None) -> str:
    return CodeVersions(file).of(one or trial()).digest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "exp.py").write_text("from rldsl import PPO, main\nppo = PPO()\nmain(ppo)\n")
    return tmp_path / "exp.py"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of rldsl's sources that digests are computed from."""
    copied = tmp_path / "rldsl"
    shutil.copytree(code_version.PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_version, "PACKAGE", copied)
    code_version._homes_of_extend.cache_clear()
    return copied


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + textwrap.dedent(text))


def test_a_checkout_elsewhere_has_the_same_digest(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("elsewhere") / "exp.py"
    other.write_text(project.read_text())
    assert digest(project) == digest(other)


@pytest.mark.parametrize("name", ["agents/ppo.py", "maths/losses.py", "envs/classic/pendulum.py", "train/recorder.py"])
def test_code_that_training_imports_counts(package: Path, name: str) -> None:
    before = digest(None)
    append(package / name, "\nEXTRA = 1\n")
    assert digest(None) != before


@pytest.mark.parametrize(
    "name",
    [
        *("monitor/app.py", "launch/run.py", "report/audit.py", "cli/app.py", "store/journal.py", "spec/launcher.py"),
        *("agents/sac.py", "envs/atari.py", "train/__main__.py"),
    ],
)
def test_code_that_training_this_trial_does_not_import_does_not_count(package: Path, name: str) -> None:
    before = digest(None)
    append(package / name, "\nEXTRA = 1\n")
    assert digest(None) == before


def test_agents_and_environments_of_other_kinds_have_digests_of_their_own(package: Path) -> None:
    before = [digest(None, one) for one in (trial(SAC()), trial(PPO(), Atari("Pong")))]
    append(package / "agents" / "sac.py", "\nEXTRA = 1\n")
    append(package / "envs" / "atari.py", "\nEXTRA = 1\n")
    after = [digest(None, one) for one in (trial(SAC()), trial(PPO(), Atari("Pong")))]
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_kernels_count(package: Path) -> None:
    before = digest(None)
    append(package / "compile" / "sparse_gemm.h", "\n#define EXTRA 1\n")
    assert digest(None) != before


def test_comments_docstrings_formatting_and_caches_do_not_count(package: Path) -> None:
    before = digest(None)
    path = package / "agents" / "ppo.py"
    text = path.read_text().replace("from __future__ import annotations", "from  __future__  import (annotations)", 1)
    path.write_text(f'"""Another docstring."""\r\n{text.partition(chr(10))[2]}\n\n# a comment\n"""a text"""\n')
    (package / "agents" / "__pycache__").mkdir()
    (package / "agents" / "__pycache__" / "ppo.cpython-311.pyc").write_bytes(b"x")
    assert path.read_text() != text
    assert digest(None) == before


def test_experiments_and_settings_do_not_count(project: Path) -> None:
    before = digest(project)
    (project.parent / "settings.py").write_text("from rldsl import PPO\nLR = 1e-3\ndef make(): return PPO(lr=LR)\n")
    project.write_text("from rldsl import main\nfrom settings import make\nppo = make()\nmain(ppo)\n")
    assert digest(project) == before
    append(project.parent / "settings.py", "OTHER = 2\n")
    assert digest(project) == before


def test_the_users_modules_count_with_everything_that_they_import(project: Path) -> None:
    folder = project.parent
    (folder / "lib").mkdir()
    (folder / "lib" / "__init__.py").write_text("")
    (folder / "lib" / "reward.py").write_text("from .scale import SCALE\n\ndef reward(x): return SCALE * x\n")
    (folder / "lib" / "scale.py").write_text("SCALE = 2\n")
    (folder / "worlds.py").write_text("import gymnasium\nfrom lib import reward\n")
    (folder / "unused.py").write_text("import torch\n")
    project.write_text("import worlds\nfrom rldsl import main\nmain()\n")
    names = set(CodeVersions(project).of(trial()).files)
    assert {"worlds", "lib", "lib.reward", "lib.scale"} <= names
    assert "unused" not in names and "exp.py" not in names
    before = digest(project)
    (folder / "lib" / "scale.py").write_text("SCALE = 3\n")
    assert digest(project) != before


def test_a_module_that_only_the_settings_name_counts(project: Path) -> None:
    (project.parent / "my_worlds.py").write_text("import gymnasium\n")
    env = Gym("my_worlds:Corridor-v0")
    assert "my_worlds" in CodeVersions(project).of(trial(env=env)).files
    assert "my_worlds" not in CodeVersions(project).of(trial()).files


def test_installed_packages_do_not_count(project: Path) -> None:
    project.write_text("import gymnasium, torch, numpy\nfrom rldsl import main\nmain()\n")
    assert all(name.startswith("rldsl.") for name in CodeVersions(project).of(trial()).files)


def test_an_agent_in_the_experiment_file_counts_and_its_experiments_do_not(tmp_path: Path) -> None:
    file = tmp_path / "hill_climbing.py"
    file.write_text(EXAMPLE.read_text())
    (experiment,) = load(file)
    base = experiment.base()
    before = digest(file, base)
    file.write_text(EXAMPLE.read_text().replace(".frames(1e5)", ".frames(2e5)"))
    assert file.read_text() != EXAMPLE.read_text()
    assert digest(file, base) == before
    file.write_text(EXAMPLE.read_text().replace("candidate = self.weights + ", "candidate = self.weights - "))
    assert file.read_text() != EXAMPLE.read_text()
    assert digest(file, base) != before


def test_what_a_class_of_the_experiment_file_refers_to_counts(tmp_path: Path) -> None:
    file = tmp_path / "exp.py"
    text = "import gymnasium\nSCALE = 2\nUNUSED = 1\n\nclass Env(gymnasium.Env):\n    scale = SCALE\n"
    file.write_text(text)
    before = digest(file)
    file.write_text(text.replace("UNUSED = 1", "UNUSED = 2"))
    assert digest(file) == before
    file.write_text(text.replace("SCALE = 2", "SCALE = 3"))
    assert digest(file) != before
    file.write_text(f"{text}\ngymnasium.register('Mine-v0', Env)\n")
    assert digest(file) != before
