"""A profile: what is wrong with it is a sentence, and nothing that it says is read by a shell but its own lines."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldsl import Dstack, SpecError
from rldsl.launch.dstack.configuration import CODE, JOBS, commands, configuration, environment, run_name
from rldsl.launch.jobs import LEAST, Resources
from rldsl.spec.launcher import Launcher

BOTH = (CODE, JOBS)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"gpuu": ("L4",)}, "has no field 'gpuu'; did you mean gpu"),
        ({"gpu": ("L4; rm -rf /",)}, "gpu.0 should be letters, digits"),
        ({"spot": "cheap"}, "has no 'cheap'"),
        ({"hours": 0}, "hours should be greater than 0"),
        ({"max_price": -1}, "max_price should be greater than 0"),
        ({"retry_on": ("rain",)}, "retry_on.0 has no 'rain'; valid: no-capacity, interruption, error"),
        ({"retry_on": ("error", "error")}, "holds 'error' twice"),
        ({"volumes": ("data",)}, "volumes.0 should be name:/path"),
        ({"image": "a b"}, "image should be the name of a Docker image"),
        ({"image": "x/y", "python": "3.12"}, "give image or python, not both"),
        ({"python": "3"}, "python should be a version of Python such as 3.12"),
        ({"results": "nobody"}, "results should be user/name on the Hugging Face Hub, or the /path"),
        ({"results": "me/results"}, "results on the Hub need a token: name the secret"),
        ({"results": "/ckpt"}, "/ckpt is on no volume: mount one there"),
        ({"secrets": ("hf_AbCdEfGhIjKlMnOpQrSt",)}, "should be the name of a secret, but looks like its value"),
        ({"secrets": ("a b",)}, "secrets.0 should be letters, digits and _"),
        ({"env": {"HF_TOKEN": "x"}}, "HF_TOKEN looks like a secret"),
        ({"env": {"NOTE": "hf_AbCdEfGhIjKlMnOpQrStUvWx"}}, "NOTE looks like a secret"),
        ({"setup": ("export API_KEY=abc",)}, "looks like a secret"),
        ({"setup": ("one\ntwo",)}, "setup.0 should be one line"),
    ],
)
def test_a_mistake_is_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=re.escape(sentence)) as caught:
        Dstack(**fields)
    assert "\n" not in str(caught.value)


def test_a_profile_goes_to_json_and_back() -> None:
    profile = Dstack(gpu=("L4",), results="me/results", secrets=("hf_token",), hours=6, volumes=("data:/data",))
    assert Launcher.parse(json.loads(json.dumps(profile.data()))) == profile


def test_it_becomes_what_dstack_calls_it() -> None:
    profile = Dstack(
        gpu=("L4", "A10G"), gpu_memory_gb=20, gpus=1, cpus=4, memory_gb=16, disk_gb=50, hours=6, spot="spot",
        max_price=0.5, backends=("gcp",), regions=("us-east1",), fleets=("mine",), volumes=("data:/data",),
        retry_hours=1, env={"A": "1"}, secrets=("hf_token",), results="/data/runs", python="3.12", install=False,
    )  # fmt: skip
    made = configuration(profile, LEAST, [JOBS])
    assert made["resources"] == {
        "cpu": "4..",
        "memory": "16GB..",
        "disk": "50GB..",
        "gpu": {"name": ["L4", "A10G"], "memory": "20GB..", "count": 1},
    }
    assert made["retry"] == {"on_events": ["no-capacity", "interruption", "error"], "duration": "3600s"}
    assert made["env"] == {"A": "1", "HF_TOKEN": "${{ secrets.hf_token }}", "SUBMITIT_EXECUTOR": "dstack"}
    assert (made["max_duration"], made["max_price"], made["spot_policy"]) == ("21600s", 0.5, "spot")
    assert (made["backends"], made["regions"], made["fleets"]) == (["gcp"], ["us-east1"], ["mine"])
    assert (made["volumes"], made["python"]) == (["data:/data"], "3.12")


def test_a_job_asks_for_what_its_sessions_use_where_the_profile_is_silent() -> None:
    assert "gpu" not in configuration(Dstack(), Resources(2, 0), BOTH)["resources"]
    assert configuration(Dstack(), Resources(2, 1), BOTH)["resources"]["gpu"] == {"count": 1}
    assert configuration(Dstack(), Resources(2, 0), BOTH)["resources"]["cpu"] == "2.."
    assert "retry" not in configuration(Dstack(retry_on=()), LEAST, BOTH)


@given(st.text())
def test_any_name_becomes_one_that_dstack_takes(name: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9-]{1,40}", run_name(name))
    assert run_name(name) != run_name(name)


WORDS = ("gpu", "backends", "regions", "fleets", "volumes", "secrets")
TEXTS = ("image", "python", "results")
hostile = st.one_of(
    st.text(),
    st.sampled_from(["$(id)", "`id`", "a; id", "a && id", "a\nid", "'", '"', "${{ secrets.x }}", "..", "-x", ""]),
)


@given(field=st.sampled_from([*WORDS, *TEXTS, "env"]), text=hostile)
def test_no_setting_reaches_the_shell(field: str, text: str) -> None:
    """Whatever is written there is refused, or is no part of the lines that a machine runs."""
    value: Any = (text,) if field in WORDS else {"VALUE": text} if field == "env" else text
    try:
        profile = Dstack(**{field: value})
    except SpecError:
        return
    assert commands(profile, BOTH) == commands(Dstack(), BOTH)
    assert set(environment(profile)) <= {"VALUE", "SUBMITIT_EXECUTOR", text.upper()}


def test_lines_of_setup_are_run_one_after_the_other_and_a_comment_ends_only_its_own(tmp_path: Path) -> None:
    said = "exec echo started"
    lines = commands(Dstack(setup=("echo one # and more", "echo two"), install=False), ())[:2]
    shown = subprocess.run(["bash", "-c", " && ".join([*lines, said])], capture_output=True, text=True, cwd=tmp_path)
    assert shown.stdout.split() == ["one", "two", "started"]
    failing = commands(Dstack(setup=("false", "echo two"), install=False), ())[:2]
    ended = subprocess.run(["bash", "-c", " && ".join([*failing, said])], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 1 and not ended.stdout
