"""What SLURM is given: nothing that a person writes into a profile, a name or a path is read as more than it is."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from submitit.slurm.slurm import _make_sbatch_string

from rldsl import Slurm, SpecError
from rldsl.launch.jobs import LEAST, Job, Resources
from rldsl.launch.slurm import SlurmBackend

TOUCH = "touch canary"
NASTY = [f"$({TOUCH})", f"`{TOUCH}`", f"; {TOUCH};", f"' ; {TOUCH} ; '", f'"; {TOUCH}; "', "\\", "\n"]
texts = st.one_of(
    st.text(st.sampled_from("abz09_-.:=&|()[]*+@% $`;'\"\\<>#~!?{}\n\r\té\u2028"), min_size=1, max_size=20),
    st.lists(st.sampled_from(["a", "=", *NASTY]), min_size=1, max_size=4).map("".join),
)
FIELDS = ("partition", "account", "qos", "gpu", "constraint")


def script(launcher: Slurm, job: Job, folder: Path) -> str:
    parameters = SlurmBackend(launcher, folder).parameters([job])
    return _make_sbatch_string("python job", folder, map_count=1, **parameters)


def job(name: str = "x", path: str = "/code/lib", resources: Resources = LEAST) -> Job:
    return Job(("a-s0",), Path("/runs/a"), ("python",), resources, name, path=(path,))


def ran(text: str, where: Path) -> list[str]:
    """What a shell makes of a script: every command that it runs must be the one of `srun`, which says its words."""
    stub = 'srun() { printf "%s\\0" "$@" "$PYTHONPATH" "$VALUE"; }\n'
    clean = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["bash", "-c", stub + text], cwd=where, env=clean, capture_output=True, text=True, check=True)
    assert done.stderr == "" and not (where / "canary").exists()
    return done.stdout.split("\0")[:-1]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FIELDS), texts, texts)
@example("partition", "a\n#SBATCH --uid=0", "b")
def test_a_field_is_refused_or_is_one_word(field: str, value: str, name: str) -> None:
    given_fields: dict[str, Any] = {"gpus": 1} if field == "gpu" else {}
    try:
        launcher = Slurm(**given_fields, **{field: value})
    except SpecError as error:
        assert "\n" not in str(error)
        return
    lines = script(launcher, job(name), Path("/jobs")).splitlines()
    plain = script(Slurm(**given_fields), job("x"), Path("/jobs")).splitlines()
    assert len(lines) == len(plain) + (field != "gpu")
    for line in lines:
        if line.startswith("#SBATCH"):
            assert len(shlex.split(line, comments=False)) == 2, line
    flag = {"gpu": f"--gres=gpu:{value}:1"}.get(field, f"--{field}={value}")
    assert ["#SBATCH", flag] in [shlex.split(line, comments=False) for line in lines if line.startswith("#SBATCH")]


@settings(max_examples=60, deadline=None)
@given(texts, texts, texts)
@example("$(touch canary)", "'; touch canary; '", "a b")
def test_values_names_and_paths_reach_the_job_as_they_are(value: str, name: str, path: str) -> None:
    try:
        launcher = Slurm(env={"VALUE": value})
    except SpecError:
        assume(any(sign in value for sign in "\n\r\t\u2028"))
        return
    assume("\n" not in path and "\r" not in path)
    with TemporaryDirectory() as folder:
        words = ran(script(launcher, job(name, path), Path("/jobs")), Path(folder))
    assert words[-2:] == [path, value]
    assert words[-4:-2] == ["python", "job"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"env": {"HF_TOKEN": "abc"}}, "Slurm.env HF_TOKEN looks like a secret: pass it by its name alone"),
        ({"env": {"X": "hf_" + "a" * 30}}, "Slurm.env X looks like a secret: pass it by its name alone"),
        ({"setup": ("export WANDB_API_KEY=abc",)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("curl https://me:pass@host",)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("a\nb",)}, "Slurm.setup.0 should be one line"),
        ({"env": {"A B": "x"}}, "should be the name of a variable"),
        ({"pass_env": ("A=1",)}, "Slurm.pass_env.0 should be the name of a variable"),
        ({"partiton": "gpu"}, "Slurm has no field 'partiton'; did you mean partition"),
        ({"hours": 0}, "Slurm.hours should be greater than 0"),
    ],
)
def test_what_cannot_be_is_one_sentence_that_does_not_say_the_secret(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as error:
        Slurm(**fields)
    assert words in str(error.value) and "\n" not in str(error.value)
    assert "abc" not in str(error.value) and "aaaa" not in str(error.value) and "pass@" not in str(error.value)


def test_setup_lines_may_use_what_is_there(tmp_path: Path) -> None:
    launcher = Slurm(setup=("module load cuda/12", "export HF_TOKEN=$OTHER"), pass_env=("OTHER", "HF_HOME"))
    text = script(launcher, job(), tmp_path)
    assert "module load cuda/12\nexport HF_TOKEN=$OTHER\n" in text
    assert ",OTHER,HF_HOME" in text, "by name"


def test_resources_are_of_the_job_unless_the_profile_says_otherwise() -> None:
    heavy = job(resources=Resources(cpus=4, gpus=1))
    assert SlurmBackend(Slurm(), Path()).parameters([heavy])["gres"] == "gpu:1"
    said = SlurmBackend(Slurm(cpus=2, gpus=2, gpu="a100", memory_gb=1.5, hours=0.01), Path()).parameters([heavy])
    assert (said["cpus_per_task"], said["gres"], said["mem"], said["time"]) == (2, "gpu:a100:2", "1536M", 1)
    assert said["signal_delay_s"] == 20, "a third of its minute"


def test_a_run_directory_that_slurm_would_misread_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "100%j"
    folder.mkdir()
    with pytest.raises(SpecError, match="choose a run directory without %"):
        SlurmBackend(Slurm(), tmp_path)._submit_array([job()], folder)
