"""What a machine lacks to run an environment: looked for, never imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rldsl import Classic, Playground


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of Playground's name, which fails if it is imported."""
    folder = tmp_path / "mujoco_playground"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError('it was imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mujoco_playground", raising=False)
    return folder


def test_most_environments_lack_nothing() -> None:
    assert Classic("CartPole-v1").missing() is None


def test_without_the_extra_every_task_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco_playground", None)
    sentence = "MuJoCo Playground is not installed; install it with pip install 'rldsl[playground]'"
    assert Playground("CartpoleBalance").missing() == Playground("Go1Getup").missing() == sentence


def test_robots_need_their_models_and_other_tasks_do_not(package: Path) -> None:
    assert Playground("CartpoleBalance").missing() is None
    models = package / "external_deps" / "mujoco_menagerie"
    for id in ("Go1Getup", "PandaPickCube"):
        lacks = Playground(id).missing()
        assert lacks is not None
        assert lacks.startswith(f"its robot models are not in {models}; download them with python -c ")
    models.mkdir(parents=True)
    assert Playground("Go1Getup").missing() is None


def test_looking_imports_neither_jax_nor_playground() -> None:
    code = (
        "import sys; from rldsl import Playground; Playground('Go1Getup').missing()\n"
        "sys.exit(bool({'jax', 'mujoco_playground', 'mujoco'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
