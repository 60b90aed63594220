"""What SLURM is given: nothing that a person writes into a profile, a name or a path is read as more than it is."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from rldsl import Slurm, SpecError
from rldsl.launch.jobs import LEAST, Job, JobMaker, Resources
from rldsl.launch.slurm import SlurmBackend
from rldsl.launch.slurm_job import in_container, make_scratch
from rldsl.launch.slurm_script import batch_script, options
from rldsl.spec.sbatch import FIELDS, FREE, OURS

TOUCH = "touch canary"
NASTY = [f"$({TOUCH})", f"`{TOUCH}`", f"; {TOUCH};", f"' ; {TOUCH} ; '", f'"; {TOUCH}; "', "\\", "\n"]
texts = st.one_of(
    st.text(st.sampled_from("abz09_-.:=&|()[]*+@% $`;'\"\\<>#~!?{}\n\r\té\u2028"), min_size=1, max_size=20),
    st.lists(st.sampled_from(["a", "=", *NASTY]), min_size=1, max_size=4).map("".join),
)
WORDS = ("partition", "account", "qos", "gpu", "constraint")


def script(launcher: Slurm, job: Job, folder: Path) -> str:
    return batch_script(launcher, [job], folder, 0)


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
@given(st.sampled_from(WORDS), texts, texts)
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
    assert words[-7:-2] == ["-m", "rldsl.launch.slurm_job", "/jobs", "0", "120"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"env": {"HF_TOKEN": "abc"}}, "Slurm.env HF_TOKEN looks like a secret: pass it by its name alone"),
        ({"env": {"X": "hf_" + "a" * 30}}, "Slurm.env X looks like a secret: pass it by its name alone"),
        ({"setup": ("export WANDB_API_KEY=abc",)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("curl https://me:pass@host",)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("wandb login " + "0a" * 20,)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("wandb login --relogin '" + "0a" * 20 + "'",)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("docker login -u me --password hunter2",)}, "Slurm.setup.0 looks like a secret: "),
        ({"setup": ("git clone https://abcdefghij0123456789@host/x",)}, "Slurm.setup.0 looks like a secret: "),
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
    assert "\nmodule load cuda/12\n" in text and "\nexport HF_TOKEN=$OTHER\n" in text
    assert ",OTHER,HF_HOME" in text, "by name"


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        (("true", "echo fine"), 0, "fine\n"),
        (("echo first", "ls /none 2> /dev/null", "echo second"), 2, "first\nrldsl: setup failed with exit 2: ls /none"),
        (("exit 7",), 7, "rldsl: setup failed with exit 7: exit 7\n"),
        (("exit 0",), 1, "rldsl: setup failed with exit 0: exit 0\n"),
        (("if true; then", "echo inside", "fi"), 0, "inside\n"),
    ],
)
def test_a_setup_line_that_fails_ends_the_job(setup: tuple[str, ...], code: int, words: str, tmp_path: Path) -> None:
    text = "srun() { true; }\n" + script(Slurm(setup=setup), job(), tmp_path)
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == code and done.stdout.startswith(words)


def test_options_of_sbatch_are_passed_on_and_checked(tmp_path: Path) -> None:
    text = script(
        Slurm(sbatch={"nice": 100, "mail_user": "me@site", "exclusive": True, "hold": False}), job(), tmp_path
    )
    assert "#SBATCH --nice=100\n#SBATCH --mail-user=me@site\n#SBATCH --exclusive\n" in text and "--hold" not in text
    for wrong, words in [
        ({"nicee": 1}, "nicee is no option of sbatch; did you mean nice"),
        ({"partition": "gpu"}, "partition is the field partition"),
        ({"output": "x"}, "output cannot be set: rldsl sets it"),
        ({"nice": "1\n#SBATCH --uid=0"}, "nice should be one line"),
    ]:
        with pytest.raises(SpecError, match=words):
            Slurm(sbatch=wrong)


def test_every_option_of_sbatch_is_accounted_for() -> None:
    known = FREE | FIELDS.keys() | OURS
    assert {"nice", "exclude", "nodelist", "reservation", "licenses", "mail-user"} <= FREE
    assert not FREE & OURS and not FREE & FIELDS.keys() and len(known) == len(FREE) + len(OURS) + len(FIELDS)


def test_a_job_in_a_container_sees_the_run_directory(tmp_path: Path) -> None:
    maker = JobMaker(tmp_path / "plan.json", tmp_path, None, ())
    one = replace(maker.job_of(["a-s0"], tmp_path / "a"), cwd=tmp_path / "code", resources=Resources(1, 1))
    words = in_container(one, "image.sif")
    assert words[:4] == ["apptainer", "exec", "--nv", f"--bind={tmp_path}"]
    assert words[4:9] == [f"--pwd={tmp_path / 'code'}", str(Path("image.sif").resolve()), "python", "-m", "rldsl.train"]


def test_lists_of_partitions() -> None:
    assert Slurm(partition="gpu,cpu").partition == "gpu,cpu"
    with pytest.raises(SpecError, match="a partition, or several as in gpu,cpu"):
        Slurm(partition="gpu,")


def test_resources_are_of_the_job_unless_the_profile_says_otherwise() -> None:
    heavy = job(resources=Resources(cpus=4, gpus=1))
    assert options(Slurm(), [heavy], Path(), 0)["gres"] == "gpu:1"
    said = options(Slurm(cpus=2, gpus=2, gpu="a100", memory_gb=1.5, hours=0.01), [heavy], Path(), 0)
    assert (said["cpus-per-task"], said["gres"], said["mem"], said["time"]) == (2, "gpu:a100:2", "1536M", 1)
    assert said["signal"] == "USR2@20", "a third of its minute"


def test_a_run_directory_that_slurm_would_misread_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "100%j"
    folder.mkdir()
    with pytest.raises(SpecError, match="choose a run directory without %"):
        SlurmBackend(Slurm(), tmp_path)._submit_array([job()], folder, 0)


@pytest.mark.parametrize(
    "line",
    [
        "wandb login",
        "wandb login $WANDB_API_KEY",
        'hf auth login --token "$HF_TOKEN"',
        "source ~/.bash_profile",
        "bash --login /site/modules.sh",
        "docker login registry.example.org",
        "module load cuda/12.4",
        "git checkout 0123456789abcdef0123456789abcdef01234567",
    ],
)
def test_setup_lines_without_secrets_are_taken(line: str) -> None:
    assert Slurm(setup=(line,)).setup == (line,)


def test_a_script_says_what_it_waits_for_and_where_it_works(tmp_path: Path) -> None:
    plain = script(Slurm(), job("cart/ppo"), tmp_path)
    assert "#SBATCH --job-name=cart-ppo\n" in plain and "dependency" not in plain and "--scratch" not in plain
    text = script(Slurm(scratch=True), replace(job(), after=("5", "6_1")), tmp_path)
    assert "#SBATCH --dependency=afterok:5:6_1\n#SBATCH --kill-on-invalid-dep=yes\n" in text
    assert text.rstrip().endswith(" --scratch")


def test_a_job_of_another_user_does_not_take_the_scratch_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    first = Path(make_scratch())
    assert first == tmp_path / "rldsl-7_3"
    (first / "left").touch()
    assert make_scratch() == str(first) and not list(first.iterdir()), "what its last life has left is removed"
    first.rmdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").touch()
    first.symlink_to(tmp_path / "mine")
    other = Path(make_scratch())
    assert other.name.startswith("rldsl-7_3-") and other.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "mine" / "kept").exists(), "a link is not followed"
