"""A detached search on this machine: its driver is a process that `status`, `stop`, `resume` and `search` know."""

from __future__ import annotations

import json

import pytest

from rldsl.store.search_dir import SearchDir, search_dirs
from tests.project import Project, events, until

EXPERIMENT = """
    from rldsl import Classic, Local, Random, choice, experiment, main

    base = experiment("x").env(Classic("CartPole-v1")).agent(Random()).log_every(1000).on(Local(parallel=1, members=1))
    axes = base.compute(compile="off").search(**{"env.num_envs": choice(1, 2, 4)})

    if __name__ == "__main__":
        main(axes.frames(3000).random(2).named("x/short"), axes.frames(2e8).random(1).named("x/long"))
"""


@pytest.fixture
def search(project: Project) -> Project:
    project.write(EXPERIMENT)
    return project


def said(project: Project, *words: str, fails: bool = False) -> str:
    done = project.python("exp.py", *words)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def directory(project: Project) -> SearchDir:
    (found,) = search_dirs(project.runs)
    return found


def test_a_driver_is_stopped_and_resumed(search: Project) -> None:
    assert "drives the search" in said(search, "search", "--only", "long", "--detach")
    until(lambda: search.sessions and [one["event"] for one in events(search.session)][-1:] == ["started"], 60)
    assert "has a driver: local job" in said(search, "search", "--only", "long", "--detach", fails=True)
    assert "search x/long: 1 of 1 trial: 1 running; local job" in said(search, "status", "--only", "long")
    session = json.loads(said(search, "status", "--only", "long", "--json"))[0]
    assert session["state"] == "running"
    refused = said(search, "stop", "--only", "long", "--session", session["session"], fails=True)
    assert "belongs to a search, which would start it again" in refused
    assert "stopped the driver of the search x/long" in said(search, "stop", "--only", "long")
    assert not directory(search).running and events(search.session)[-1]["event"] == "stopped"
    assert "nothing drives it, `resume` continues" in said(search, "status", "--only", "long")
    assert "drives the search" in said(search, "resume", "--only", "long", "--detach")
    until(lambda: events(search.session)[-1]["event"] == "started", 60)
    said(search, "stop", "--only", "long")


def test_the_command_follows_a_driver_to_its_end(search: Project) -> None:
    assert "--detach returns at once" in said(search, "search", "--detach", "--validate", "1", fails=True)
    said(search, "search", "--only", "short", "--detach")
    followed = said(search, "search", "--only", "short")
    assert "Ctrl-C leaves it running" in followed or "trial 0" in followed
    assert "2 of 2 trials: 2 done; finished" in said(search, "status", "--only", "short")
    log = (directory(search).path / "log.txt").read_text()
    assert log.count("event=suggested") == 2 and log.rstrip().endswith("finished")
    assert said(search, "resume", "--only", "short", "--detach"), "a finished search is left as it is"
    until(lambda: (directory(search).path / "log.txt").read_text().count(" finished\n") == 2, 60)
    assert [sum(one["event"] == "started" for one in events(path)) for path in search.sessions] == [1, 1]
