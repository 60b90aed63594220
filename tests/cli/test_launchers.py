"""Where to run: chosen by name, by file, in the experiment; checked, changed by options, and a user's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rldsl import Slurm
from rldsl.launch.slurm import SlurmBackend
from tests.docs.documents import parse_blocks
from tests.project import ROOT, Project, events, until

EXPERIMENT = """
    from rldsl import Classic, Local, Random, Slurm, experiment, main

    cart = experiment("cart").env(Classic("CartPole-v1")).agent(Random()).frames(1000).seeds(2)
    here = cart.named("here").on(Local(parallel=1))
    there = cart.named("there").on(Slurm(partition="gpu", hours=2))

    if __name__ == "__main__":
        main(here, there)
"""


@pytest.fixture
def made(project: Project) -> Project:
    project.write(EXPERIMENT)
    return project


def said(project: Project, *words: object, code: int = 0) -> str:
    done = project.python("exp.py", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def header(project: Project, *words: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(said(project, "plan", "--json", *words))["experiments"][0]["launcher"]
    return found


def test_an_experiment_says_where_it_runs_and_a_command_says_otherwise(made: Project) -> None:
    assert header(made, "--only", "there")["partition"] == "gpu"
    assert header(made, "--only", "there", "--set", "launcher.hours=6")["hours"] == 6
    assert header(made, "--only", "there", "--on", "local")["kind"] == "local"
    made.write("from rldsl import Slurm\nlauncher = Slurm(partition='long')\n", "launchers/slurm.py")
    assert header(made, "--only", "here", "--on", "slurm")["partition"] == "long", "the project's own profile"
    assert header(made, "--only", "here", "--on", "slurm", "--gin", "Slurm.hours = 3")["hours"] == 3


def test_a_frozen_plan_knows_its_launcher(made: Project) -> None:
    said(made, "plan", "--only", "here", "--out", "frozen.json", "--set", "launcher.members=2")
    assert json.loads((made.root / "frozen.json").read_text())["experiments"][0]["launcher"]["members"] == 2
    assert "2 done" in said(made, "--plan", "frozen.json")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--on", "slrum"], "error: --on slrum: there is no such launcher; did you mean slurm?"),
        (["--on", "no.py"], "error: --on no.py: there is no such file"),
        (["--only", "there", "--set", "launcher.hour=6"], "launcher.hour names no field; did you mean launcher.hours"),
        (["--only", "there", "--set", "launcher.hours=-1"], "there.launcher.hours should be greater than 0, got -1"),
        (["--only", "here", "--set", "launcher.partition=x"], "launcher.partition names no field"),
    ],
)
def test_what_is_wrong_is_one_sentence(made: Project, words: list[str], sentence: str) -> None:
    text = said(made, "plan", *words, code=2)
    assert sentence in text and "\n" not in text.strip()


def test_one_command_runs_in_one_place(made: Project) -> None:
    assert "error: here and there have different launchers: choose one with --on" in said(made, code=2)


def test_where_there_is_no_slurm_a_sentence_says_so(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    text = said(made, "--only", "there", "--detach", code=2)
    assert text == "error: there is no scontrol on this machine: SLURM is used from a login node of its cluster\n"
    assert "each job asks for partition gpu" in said(made, "plan", "--only", "there")
    shown = made.rldsl("launchers", "slurm")
    assert shown.returncode == 1 and "there is no sbatch on this machine" in shown.stdout


def test_places_are_listed_and_checked(made: Project) -> None:
    made.write("from rldsl import Local\nlauncher = Local(parallel=3)\n", "launchers/three.py")
    found = json.loads(made.rldsl("launchers", "--json").stdout)
    assert next(iter(found)) == "launchers/three.py" and {"local", "slurm"} <= set(found)
    assert found["launchers/three.py"][0] == {
        "name": "processes",
        "ok": True,
        "words": "3 at a time",
        "optional": False,
    }
    assert made.rldsl("launchers", "three").returncode == 0
    assert made.rldsl("launchers", "four").returncode == 1


def test_detached_here_it_goes_on_is_seen_and_is_kept(made: Project) -> None:
    words = ("--only", "here", "--frames", 200_000)
    text = said(made, *words, "--detach")
    assert "submitted 2 sessions as 1 job to local" in text
    until(lambda: made.sessions and "started" in [one["event"] for one in events(made.sessions[0])])
    assert "2 sessions in the queue already" in said(made, *words, "--detach")
    assert {one["state"] for one in json.loads(said(made, "status", "--json", *words))} == {"running"}
    assert "cancelled 1 job of 2 sessions" in said(made, "stop", *words)
    until(lambda: [one["event"] for one in events(made.sessions[1])][-1] == "stopped")
    until(lambda: "2 resume" in said(made, "status", *words))


def test_a_launcher_of_ones_own_comes_through_the_same_door(made: Project) -> None:
    for block in parse_blocks((ROOT / "docs" / "launchers.md").read_text(), "launchers.md"):
        if block.title == "launchers/gentle.py":
            made.write(block.body, block.title)
    words = ("--only", "here", "--on", "gentle", "--set", "launcher.niceness=15")
    text = said(made, *words)
    assert re.search(r"submitted 2 sessions as \d jobs? to gentle", text) and "2 done" in text
    record = json.loads((made.runs / ".jobs" / "tickets.jsonl").read_text().splitlines()[0])
    assert (record["backend"], record["launcher"]["niceness"]) == ("gentle", 15)
    assert "2 done" in said(made, "status", "--only", "here")


def test_a_place_that_lacks_a_method_is_a_sentence(made: Project) -> None:
    made.write(
        """
        from typing import ClassVar, Literal

        from rldsl import Launcher


        class Half(Launcher, frozen=True):
            kind: Literal["half"] = "half"
            implementation: ClassVar[str] = f"{__name__}:Backend"


        class Backend:
            def __init__(self, launcher, runs):
                pass

            def check(self):
                return []


        launcher = Half()
        """,
        "launchers/half.py",
    )
    text = said(made, "--only", "here", "--on", "half", "--detach", code=2)
    assert "error: Half cannot run: Backend has no offers, submit, find, states, cancel, fetch, last_lines" in text


def test_what_is_missing_but_optional_is_not_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    checks = {check.name: check for check in SlurmBackend(Slurm(), tmp_path).check()}
    accounts = checks["accounts"]
    assert (accounts.ok, accounts.optional) == (False, True) and accounts.words.startswith("none, so how jobs ended")
    assert not checks["sbatch"].optional
