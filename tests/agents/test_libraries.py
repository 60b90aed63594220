"""Compiled steps on disk: a later process runs the same machine code, and only what the user alone could write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import fx

from rldsl import MLP, PPO
from rldsl.agents.base import AgentContext
from rldsl.agents.compiled import load
from rldsl.agents.libraries import KEPT_DAYS, Libraries, digest_of, graph_digest
from rldsl.agents.ppo import PPOAgent
from rldsl.envs.classic import make
from rldsl.envs.contract import Spaces

STEP = """
import sys, torch
from rldsl import Adam
from rldsl.agents.update import Update
from rldsl.nets.layout import Layout

def loss(params, batch, coefficients):
    error = (torch.bmm(batch["x"], params["weight"]) - batch["y"]).square().flatten(1).mean(1)
    return coefficients["scale"] * error, error.unsqueeze(1)

torch.manual_seed(0)
layout = Layout.of({"weight": (3, 2)})
update = Update(layout, torch.randn(2, layout.size), Adam(), loss, True, "squared error")
for _ in range(3):
    batch = {"x": torch.randn(2, 5, 3), "y": torch.randn(2, 5, 2)}
    update(torch.tensor([0.1, 0.2]), torch.tensor([1.0, 1e3]), {"scale": torch.tensor([1.0, 0.5])}, batch)
print(update.flat.numpy().tobytes().hex(), "torch._dynamo" in sys.modules)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rldsl" / "compiled"


def in_a_process() -> list[str]:
    return subprocess.run([sys.executable, "-c", STEP], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.skipif(not shutil.which("g++"), reason="COMPILED STEPS ARE NOT TESTED: there is no g++ on this machine")
def test_a_later_process_computes_the_same_without_torchs_compiler(cache: Path) -> None:
    first, compiler = in_a_process()
    assert compiler == "True"
    assert in_a_process() == [first, "False"]
    (library,) = cache.glob("*.so")
    library.write_bytes(b"not a library")
    assert in_a_process() == [first, "True"], "what cannot be loaded is compiled again"
    assert in_a_process() == [first, "False"]


def test_what_others_could_have_written_is_not_used(cache: Path) -> None:
    assert Libraries().folder == cache
    cache.chmod(0o777)
    assert Libraries().folder is None
    assert Libraries().find("key") is None
    assert Libraries().path("graph") is None
    assert Libraries().keep("graph", __file__) is None


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert Libraries().folder is None


@pytest.mark.parametrize(
    "note", ["", "[]", "{", '{"graph": "g"}', '{"graph": "gone", "places": []}', '{"graph": "g", "places": [0]}']
)
def test_a_note_that_makes_no_sense_is_none(cache: Path, note: str) -> None:
    libraries = Libraries()
    libraries.keep("g", __file__)
    (cache / "key.json").write_text(note)
    assert libraries.find("key") is None


def test_what_was_kept_is_found_and_what_was_not_used_for_long_is_deleted(cache: Path) -> None:
    libraries = Libraries()
    for name in ("old", "used"):
        libraries.keep(name, __file__)
        libraries.name(f"key of {name}", name, [(0, None), (1, "x")])
    long_ago = (cache / "old.so").stat().st_mtime - (KEPT_DAYS + 1) * 86_400
    for file in cache.iterdir():
        os.utime(file, (long_ago, long_ago))
    found = libraries.find("key of used")
    assert found and found.places == [(0, None), (1, "x")]
    libraries.keep("new", __file__)
    assert sorted(file.name for file in cache.glob("*.so")) == ["new.so", "used.so"]
    assert libraries.find("key of used"), "its note was used as well"
    assert json.loads((cache / "key of used.json").read_text())["graph"] == "used"
    assert load(str(cache / "new.so")) is None


def test_other_code_other_shapes_and_other_numbers_have_other_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    def traced(constant: float, power: int) -> fx.GraphModule:
        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("constant", torch.tensor(constant))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x**power + self.constant

        return fx.symbolic_trace(Module())

    two, three = torch.zeros(2), torch.zeros(3)
    told = [(1.0, 2, two), (2.0, 2, two), (1.0, 3, two), (1.0, 2, three), (1.0, 2, two.double())]
    digests = [graph_digest(traced(constant, power), [x]) for constant, power, x in told]
    assert len(set(digests)) == len(told)
    assert graph_digest(traced(1.0, 2), [two]) == digests[0]
    assert digest_of("a", "b") == digest_of("a", "b") != digest_of("ab")
    before = digest_of("a")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    assert digest_of("a") != before


def test_an_origin_tells_settings_apart_and_users_code_has_none() -> None:
    spaces: Spaces = make("CartPole-v1", 1).spaces

    def origin(agent: PPO, num_envs: int = 4, implementation: type[PPOAgent] = PPOAgent) -> str | None:
        return implementation(AgentContext([agent], [0], spaces, num_envs, frames=512)).origin("loss")

    agent = PPO(rollout=8, minibatch=16)
    assert origin(agent) == origin(agent)
    assert len({origin(agent), origin(agent.with_(clip=0.3)), origin(agent, 8), None}) == 4

    class Mine(MLP, frozen=True):
        kind: str = "mine-of-libraries"

    class MyAgent(PPOAgent):
        pass

    assert origin(agent, implementation=MyAgent) is None
    assert origin(agent.with_(net=Mine((8,)))) is None
