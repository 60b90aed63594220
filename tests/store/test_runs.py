from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rldsl.spec.errors import SpecError
from rldsl.spec.session import session_directory
from rldsl.store import Runs, SessionDir, SessionNotFound

PLACES = [
    session_directory("ant", "sac", "ffee00", 0),
    session_directory("hopper", "ppo", "abc123", 2),
    session_directory("hopper", "ppo", "abc123", 10),
    session_directory("hopper", "ppo-search", "abd999", 0),
]


@pytest.fixture
def runs(tmp_path) -> Runs:
    root = tmp_path / "runs"
    for place in reversed(PLACES):
        SessionDir.create(root, place, {}, "")
    (root / "notes.txt").write_text("foreign")
    (root / "hopper" / "foreign" / "seed-1").mkdir(parents=True)
    (root / "hopper" / "ppo-abc123" / "seed-x").mkdir()
    (root / "hopper" / "ppo-abc123" / "seed-7").mkdir()  # a creation that was killed
    (root / ".cache" / "a-b" / "seed-1").mkdir(parents=True)
    return Runs(root)


def test_sessions_are_sorted_and_foreign_things_passed_over(runs):
    assert [str(session.path.relative_to(runs.root)) for session in runs.sessions()] == PLACES
    assert runs.existing() == set(PLACES)


def test_no_runs_directory_is_no_sessions(tmp_path):
    assert list(Runs(tmp_path / "none").sessions()) == []


@pytest.mark.parametrize(
    ("name", "place"),
    [("abc123-s2", 1), ("abc123-s1", 2), ("ff", 0), ("ppo-search", 3), ("ant", 0), (PLACES[1], 1), ("abd999", 3)],
)
def test_find(runs, name, place):
    assert runs.find(name).path == runs.root / PLACES[place]


def test_find_by_path(runs, monkeypatch):
    assert runs.find(str(runs.root / PLACES[0])).id == "ffee00-s0"
    monkeypatch.chdir(runs.root / "ant")
    assert runs.find("sac-ffee00/seed-0").id == "ffee00-s0"


def test_find_says_what_it_could_have_been(runs):
    with pytest.raises(SessionNotFound, match=f"'abc123' matches more than one session: {PLACES[1]}, {PLACES[2]}"):
        runs.find("abc123")
    with pytest.raises(SessionNotFound, match=r"no session in .* matches 'abx123-s2'; the nearest are abc123-s2"):
        runs.find("abx123-s2")


@pytest.mark.parametrize("slug", ["ALE/Pong", "..", ".hidden"])
def test_names_that_would_leave_the_layout(slug):
    with pytest.raises(SpecError, match="cannot be the name of a directory"):
        session_directory(slug, "ppo", "abc", 0)


def test_importing_the_store_imports_nothing_heavy():
    heavy = "numpy torch gymnasium jax psutil safetensors tensorboard rich typer".split()  # noqa: SIM905
    modules = "rldsl.store, rldsl.store.provenance, rldsl.store.checkpoint, rldsl.store.tensorboard, rldsl.store.runs"
    script = f"import sys, {modules}; print([name for name in {heavy} if name in sys.modules])"
    root = Path(__file__).parents[2]
    answer = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
