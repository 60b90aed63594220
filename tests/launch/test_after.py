"""Experiments that come after others: they wait, they start, or it is said why not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rldsl import Classic, Random, SpecError, experiment, run
from rldsl.launch.queues import Queues
from rldsl.plan.after import stages
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from tests.project import Project, events, until

AGENT = """
    from pathlib import Path

    from rldsl.agents.random import RandomAgent

    class FragileAgent(RandomAgent):
        def iterate(self, world):
            if Path("BROKEN").exists():
                raise ValueError("kaboom")
            super().iterate(world)
"""
EXPERIMENT = """
    from typing import ClassVar, Literal

    from rldsl import Classic, Random, experiment, main


    class Fragile(Random, frozen=True):
        kind: Literal["fragile"] = "fragile"
        implementation: ClassVar[str] = "fragile:FragileAgent"


    cart = experiment("cart").env(Classic("CartPole-v1")).agent(Random()).frames(400).compute(compile="off").seeds(1)
    first = cart.agent(Fragile()).log_every(400).named("first")
    second = cart.log_every(200).named("second").after(first)
    good = cart.log_every(100).named("good")
    better = cart.log_every(50).named("better").after(good)

    if __name__ == "__main__":
        main(better, second, first, good)
"""
OWN = """
    from typing import ClassVar, Literal

    from rldsl import Launcher


    class Mine(Launcher, frozen=True):
        kind: Literal["mine"] = "mine"
        implementation: ClassVar[str] = "mine_backend:MineBackend"


    launcher = Mine()
"""
OWN_BACKEND = """
    from rldsl import Local
    from rldsl.launch.backend import Spending, Usage
    from rldsl.launch.local_backend import LocalBackend


    class MineBackend(LocalBackend):
        dependencies = False

        def __init__(self, launcher, runs):
            super().__init__(Local(), runs)

        def spending(self, ids):
            return Spending(3.25, 0.5)

        def usage(self, ids):
            return Usage(1.5, 0.25)
"""


@pytest.fixture
def four(project: Project) -> Project:
    """Two experiments that come after others; as long as a file is there, the first of those others fails."""
    project.write(EXPERIMENT)
    project.write(AGENT.replace("BROKEN", str(project.root / "broken")), "fragile.py")
    (project.root / "broken").touch()
    return project


def said(project: Project, *words: object, code: int = 0) -> str:
    done = project.python("exp.py", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def time_of(project: Project, name: str, event: str) -> float | None:
    """When this happened to the session of an experiment."""
    for path in project.sessions:
        if json.loads((path / "session.json").read_text())["experiment"] == name:
            return next((one["time"] for one in events(path) if one["event"] == event), None)
    return None


def in_order(project: Project, before: str, after: str) -> bool:
    """Whether an experiment began when another one was done, and is done itself."""
    done, started = time_of(project, before, "done"), time_of(project, after, "started")
    return bool(done and started and done <= started and time_of(project, after, "done"))


def reasons(project: Project) -> dict[str, str]:
    """What `status` says of each experiment."""
    return {one["experiment"]: one["reason"] or "" for one in json.loads(said(project, "status", "--json"))}


def test_sessions_start_when_those_before_them_are_done_and_never_if_one_failed(four: Project) -> None:
    told = said(four, code=1)
    assert re.search(r"not started: it comes after first, whose session \w+-s0 failed", told), told
    assert in_order(four, "good", "better") and time_of(four, "second", "started") is None
    assert re.search(r"not started: it comes after first, whose session \w+-s0 failed", reasons(four)["second"])
    plan = said(four, "plan")
    assert "after first: 0 of 1 session done, 1 failed" in plan and "after good: 1 of 1 session done" in plan
    assert "not started: it comes after first" in plan
    (four.root / "broken").unlink()
    said(four, "resume")
    assert time_of(four, "first", "done") and time_of(four, "second", "started") is None
    said(four)
    assert in_order(four, "first", "second")


def test_an_experiment_by_itself_is_not_started_before_the_others_are_done(four: Project) -> None:
    told = said(four, "--only", "better", "--frames", 200, code=1)
    assert "comes after good" in told and "has not been started" in told
    assert "1 session not started: it comes after good" in said(four, "--only", "better", "--detach", code=1)
    assert not four.sessions
    said(four, "plan", "--only", "better", "--out", "better.json")
    assert "which this plan does not have: plan both together" in said(four, "train", "--plan", "better.json", code=2)


def test_detached_sessions_wait_for_the_jobs_of_others(four: Project) -> None:
    told = said(four, "--detach")
    assert "1 session starts when first is done" in told and "1 session starts when good is done" in told
    until(lambda: in_order(four, "good", "better"), 90)
    queues = Queues(four.runs)
    until(lambda: not any(queues.job(record).live for record in queues.records.values()), 60)
    assert time_of(four, "second", "started") is None
    why = r"not started: it comes after first, whose session \w+-s0 failed; local job "
    assert re.match(why, reasons(four)["second"])


def test_a_queue_without_dependencies_gets_the_sessions_when_the_others_are_done(four: Project) -> None:
    four.write(OWN, "launchers/mine.py")
    four.write(OWN_BACKEND, "mine_backend.py")
    words = ("train", "--on", "mine", "--only", "good", "--only", "better", "--detach")
    told = said(four, *words)
    assert "1 session kept as a backlog until good is done; the same command submits them then" in told
    assert len((four.runs / ".jobs" / "tickets.jsonl").read_text().splitlines()) == 1
    assert reasons(four)["better"].endswith("not submitted yet: waits for good")
    until(lambda: time_of(four, "good", "done"), 60)
    said(four, *words)
    until(lambda: in_order(four, "good", "better"), 60)
    status = said(four, "status")
    assert "cost so far: $3.25, $0.50/h now" in status and "used so far: 1.50 core-hours, 0.25 GPU-hours" in status


MISTAKES = {
    "main(second)": "second comes after first, which is not declared: pass it to main(...) as well",
    "main(first.after(second), second)": "would wait for itself: first after second after first",
    "main(first.search(gamma=grid(0.9, 0.99)).grid().named('first'), second)": "first is a search, run it by itself",
    "main(second.after('first'))": ".after takes experiments, got 'first'",
}


@pytest.mark.parametrize("call", MISTAKES)
def test_mistakes_are_errors_at_their_line(project: Project, call: str) -> None:
    project.write(
        f"""
        from rldsl import PPO, Classic, experiment, grid, main

        cart = experiment("cart").env(Classic("CartPole-v1")).agent(PPO()).frames(40_000)
        first = cart.named("first")
        second = cart.named("second").after(first)
        {call}
        """
    )
    done = project.python("exp.py", "plan")
    line = 6 if call != "main(second.after('first'))" and not call.startswith("main(first.after") else 7
    assert done.returncode != 0 and MISTAKES[call] in done.stderr, done.stderr
    assert f"exp.py:{line}: " in done.stderr and "Traceback" not in done.stderr


def builders() -> tuple[Any, Any]:
    cart = experiment("x").env(Classic("CartPole-v1")).agent(Random()).log_every(100)
    first = cart.frames(200).named("first")
    return first, cart.frames(300).named("second").after(first)


def test_it_is_not_part_of_the_identity_and_survives_overrides_and_files(tmp_path: Path) -> None:
    first, second = builders()
    assert second.build().after == ("first",) and "after" not in first.build().data()
    assert second.build().base().id == second.build().with_(after=()).base().id
    plan = make_plan([Overridden(second.build()), Overridden(first.build())])
    plan.save(tmp_path / "plan.json")
    assert [part.get("after") for part in plan.header()["experiments"]] == [["first"], None]


def test_a_session_that_both_have_does_not_wait_for_itself(tmp_path: Path) -> None:
    first, _ = builders()
    both: Plan = make_plan([Overridden(first.named("second").seeds(2).after(first).build()), Overridden(first.build())])
    existing = Existing(tmp_path)
    (stage,) = stages(both, list(existing.sessions(both)), existing)
    assert len(stage.sessions) == 2 and not stage.needs


def test_run_trains_them_in_order(tmp_path: Path) -> None:
    first, second = builders()
    with pytest.raises(SpecError, match=r"not declared: pass it to run\(...\) as well"):
        run(second, runs=tmp_path, verbose=False)
    trained = run(second, first, runs=tmp_path, verbose=False)
    assert [one.state for one in trained] == ["done", "done"]
    at = {one.experiment: {event["event"]: event["time"] for event in events(one.directory)} for one in trained}
    assert at["first"]["done"] <= at["second"]["started"]
