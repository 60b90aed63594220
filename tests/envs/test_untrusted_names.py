"""A `module:name` in data is never imported and never called unless the user's own code names it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rldsl import Gym, Random, SpecError, Wrapper
from rldsl.envs import EnvError
from rldsl.spec.budget import Budget
from rldsl.spec.declared import UndeclaredModule, declare, resolve
from rldsl.spec.environment import Environment
from rldsl.spec.experiment import Trial
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.spec.user_file import load_user_file
from rldsl.store import SessionDir
from rldsl.store.plan_file import save_plan
from tests.project import Project

PIPE = {"name": "pydoc:pipepager", "kwargs": {"cmd": "touch pwned"}}
MODULE = "open('pwned', 'w')\n"


def from_data(**fields: Any) -> Environment:
    return Environment.kinds["gym"].parse({"kind": "gym", "id": "CartPole-v1", **fields})


def refusal(env: Environment) -> str:
    with pytest.raises(EnvError) as caught:
        implementation(env)(env, 1, 1)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that can be imported, and that says so."""
    (tmp_path / "evil_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "pwned"


def test_a_module_in_data_is_not_imported(evil: Path) -> None:
    for env in (from_data(id="evil_module:Env-v0"), from_data(wrappers=["evil_module:Wrapper"])):
        assert "the experiment file does not import evil_module; add `import evil_module` to it" in refusal(env)
        assert env.missing() and "does not import evil_module" in env.missing()
    assert not evil.exists()
    assert "evil_module" not in sys.modules


def test_a_module_named_by_python_code_is_imported(evil: Path) -> None:
    Gym("evil_module:Env-v0")
    env = from_data(id="evil_module:Env-v0")
    assert env.missing() is None
    assert "There is no environment" in refusal(env)
    assert evil.exists()


def test_a_copy_of_data_declares_nothing(evil: Path) -> None:
    env = from_data(id="other_module:Env-v0", wrappers=["third_module:Wrapper"])
    assert env.with_(num_envs=2).missing()
    assert "does not import other_module" in refusal(env.with_(num_envs=2))


@pytest.mark.parametrize(
    "name", ["pydoc:pipepager", "os:system", "subprocess:Popen", "builtins:exec", "gymnasium:make", "gymnasium:Env"]
)
def test_what_is_no_wrapper_is_never_called(name: str, evil: Path) -> None:
    Wrapper(name)  # even if the user's own code names it
    assert "cannot be applied: it is not a gymnasium.Wrapper" in refusal(from_data(wrappers=[{**PIPE, "name": name}]))
    assert not evil.exists()


def test_a_wrapper_that_writes_files_has_to_be_named_by_the_experiment_file(tmp_path: Path) -> None:
    wrapper = {"name": "gymnasium.wrappers:RecordVideo", "kwargs": {"video_folder": str(tmp_path / "videos")}}
    assert "it writes files" in refusal(from_data(kwargs={"render_mode": "rgb_array"}, wrappers=[wrapper]))
    assert list(tmp_path.iterdir()) == []
    assert "another library" in refusal(from_data(id="GymV26Environment-v0", kwargs={"env_id": "evil_module:X-v0"}))


def attack(session: Session) -> Session:
    """The same session with a wrapper that runs a command, as a record with consistent ids."""
    env = Environment.kinds["gym"].parse({**session.trial.env.data(), "wrappers": [PIPE]})
    return Session(experiment="x", trial=session.trial.with_(env=env), seed=0)


@pytest.mark.parametrize("command", ["train", "enjoy"])
def test_a_record_of_others_runs_no_command(command: str, project: Project) -> None:
    plain = Session(experiment="x", trial=Trial(agent=Random(), env=Gym("CartPole-v1"), budget=Budget(200)), seed=0)
    hostile = attack(plain)
    if command == "train":
        part = {"name": "x", "trials": 1, "seeds": 1, "frames": 200, "search": None, "adaptive": False, "target": None}
        part |= {"overrides": [], "work": None, "launcher": {"kind": "local"}, "cost": None}
        row = {"experiment": "x", "id": hostile.trial.id, "differs": {}, "seeds": [0], "spec": hostile.trial.data()}
        save_plan(project.root / "plan.json", {"schema": 2, "experiments": [part]}, [row])
        ran = project.python("-m", "rldsl.train", "plan.json", "--runs", "runs", "--session", hostile.id)
    else:
        SessionDir.create(project.runs, hostile.directory, hostile.record(), "")
        ran = project.python("-m", "rldsl.play.enjoy", project.runs / hostile.directory)
    assert ran.returncode in (1, 2)
    assert "Traceback" not in ran.stderr
    assert not list(project.root.rglob("pwned"))


def test_a_plan_is_not_run_as_a_python_file(project: Project) -> None:
    for name in ("plan.json", "plan.txt", "plan"):
        project.write(MODULE, name)
        ran = project.rldsl("plan", name)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith("error: ") and ran.stderr.count("\n") == 1
        assert not (project.root / "pwned").exists()
    with pytest.raises(SpecError, match=r"plan\.txt is not a Python file; a saved plan is run with --plan"):
        load_user_file(project.root / "plan.txt")


def test_a_path_in_a_record_is_not_imported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from rldsl.launch.resume import repeat_command, resume_job
    from rldsl.store.errors import StoreError

    script = project.write(MODULE, "evil.py")
    session = Session(experiment="x", trial=Trial(agent=Random(), env=Gym("CartPole-v1"), budget=Budget(200)), seed=0)
    directory = SessionDir.create(project.runs, session.directory, session.record(), "")
    origin = {"command": ["python", str(script)], "cwd": str(project.root)}
    (directory.path / "provenance.json").write_text(json.dumps(origin))
    job = resume_job(directory, project.runs)
    assert "--file" not in job.command
    assert "evil.py" not in repeat_command(directory, project.runs)
    subprocess.run(job.command, cwd=project.root, check=True, capture_output=True)
    assert not (project.root / "pwned").exists()

    record = {**session.record(), "trial": {**session.record()["trial"], "agent": {"kind": "unknown"}}}
    directory.session.write_text(json.dumps(record))
    with pytest.raises(StoreError, match=r"cannot be resumed from here: .*names no known agent"):
        resume_job(directory, project.runs)


def test_names_of_the_users_code_are_checked_when_they_are_used() -> None:
    with pytest.raises(SpecError, match="should be 'module:Class'"):
        Wrapper("os.system")


def test_a_function_in_data_has_to_be_named_by_the_users_code() -> None:
    for name in ("os:remove", "shutil:rmtree", f"{__name__}:attack"):
        with pytest.raises(UndeclaredModule, match=f"the experiment file does not name {name}"):
            resolve(name)
    declare(f"{__name__}:attack")
    assert resolve(f"{__name__}:attack") is attack
    with pytest.raises(UndeclaredModule):
        resolve(f"{__name__}:refusal")
