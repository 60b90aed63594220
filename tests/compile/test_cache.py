"""The cache of compiled steps: later processes run the same machine code, and only what the user alone could write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest
import torch
from torch import fx

from rldsl.compile.cache import KEPT_DAYS, Cache, digest_of, graph_digest
from rldsl.compile.inductor import BUILD_DIRECTORY, build_privately, load

STEP = """
import sys, torch
from rldsl import Adam
from rldsl.agents.update import Update
from rldsl.compile import Compilation
from rldsl.nets.layout import Layout

def loss(params, batch, coefficients):
    error = (torch.bmm(batch["x"], params["weight"]) - batch["y"]).square().flatten(1).mean(1)
    return coefficients["scale"] * error, error.unsqueeze(1)

torch.manual_seed(0)
layout = Layout.of({"weight": (3, 2)})
update = Update(layout, torch.randn(2, layout.size), Adam(), loss, Compilation(True), "squared error")
for _ in range(3):
    batch = {"x": torch.randn(2, 5, 3), "y": torch.randn(2, 5, 2)}
    update(torch.tensor([0.1, 0.2]), torch.tensor([1.0, 1e3]), {"scale": torch.tensor([1.0, 0.5])}, batch)
print(update.flat.numpy().tobytes().hex(), "torch._dynamo" in sys.modules)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rldsl" / "compiled"


def in_a_process(**environment: str) -> list[str]:
    known = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    run = subprocess.run(
        [sys.executable, "-c", STEP], check=True, capture_output=True, text=True, env=known | environment
    )
    return run.stdout.split()


@pytest.mark.skipif(not shutil.which("g++"), reason="COMPILED STEPS ARE NOT TESTED: there is no g++ on this machine")
def test_a_later_process_computes_the_same_without_torchs_compiler(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    first, compiler = in_a_process(TMPDIR=str(tmp_path / "tmp"))
    assert compiler == "True"
    assert list((tmp_path / "tmp").glob("torchinductor*")) == [], "torch builds in a private directory"
    for folder in (cache, cache / "build"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert any(folder.iterdir())
    assert in_a_process() == [first, "False"]
    (library,) = cache.glob("*.so")
    library.write_bytes(b"not a library")
    assert in_a_process() == [first, "True"], "a library that cannot be loaded is compiled again"
    assert in_a_process() == [first, "False"]


def test_what_others_could_have_written_is_not_used(cache: Path) -> None:
    assert Cache().folder == cache
    cache.chmod(0o777)
    assert Cache().folder is None
    assert Cache().find("key") is None
    assert Cache().path("graph") is None
    assert Cache().store("graph", __file__) is None


def test_a_damaged_or_foreign_library_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = Cache()
    stored = cached.store("graph", __file__)
    assert stored and cached.path("graph") == stored
    content = Path(stored).read_bytes()
    for damaged in (content[:-1], bytes([content[0] ^ 1]) + content[1:], b""):
        Path(stored).write_bytes(damaged)
        assert cached.path("graph") is None
    Path(stored).write_bytes(content)
    assert cached.path("graph") == stored
    (cache / "graph.sha256").unlink()
    assert cached.path("graph") is None, "a library of an earlier version has no checksum"
    cached.store("graph", __file__)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert cached.path("graph") is None
    assert Cache().folder is None


def test_torch_does_not_build_where_others_can_write(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = cache.parent.parent / "theirs"
    theirs.mkdir()
    theirs.chmod(0o777)
    for given in (None, str(theirs)):
        monkeypatch.delenv(BUILD_DIRECTORY, raising=False)
        if given:
            monkeypatch.setenv(BUILD_DIRECTORY, given)
        build_privately()
        assert os.environ[BUILD_DIRECTORY] == str(cache / "build")
    mine = cache.parent.parent / "mine"
    monkeypatch.setenv(BUILD_DIRECTORY, str(mine))
    build_privately()
    assert os.environ[BUILD_DIRECTORY] == str(mine)
    assert mine.stat().st_mode & 0o777 == 0o700
    cache.chmod(0o777)
    monkeypatch.setenv(BUILD_DIRECTORY, str(theirs))
    build_privately()
    temporary = Path(os.environ[BUILD_DIRECTORY])
    assert temporary.name.startswith("rldsl-build-")
    assert temporary.stat().st_mode & 0o777 == 0o700


def test_without_a_cache_directory_nothing_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert Cache().folder is None


@pytest.mark.parametrize(
    "note",
    [
        "",
        "[]",
        "{",
        '{"graph": "g"}',
        '{"graph": "g", "places": []}',
        '{"graph": "gone", "places": [], "kernels": "torch"}',
        '{"graph": "g", "places": [0], "kernels": "torch"}',
    ],
)
def test_an_invalid_record_is_ignored(cache: Path, note: str) -> None:
    cached = Cache()
    cached.store("g", __file__)
    (cache / "key.json").write_text(note)
    assert cached.find("key") is None


def test_what_was_kept_is_found_and_what_was_not_used_for_long_is_deleted(cache: Path) -> None:
    cached = Cache()
    for name in ("old", "used"):
        cached.store(name, __file__)
        cached.name(f"key of {name}", name, [(0, None), (1, "x")], "avx512")
    long_ago = (cache / "old.so").stat().st_mtime - (KEPT_DAYS + 1) * 86_400
    for file in cache.iterdir():
        os.utime(file, (long_ago, long_ago))
    found = cached.find("key of used")
    assert found and (found.places, found.kernels) == ([(0, None), (1, "x")], "avx512")
    cached.store("new", __file__)
    assert sorted(file.name for file in cache.glob("*.so")) == ["new.so", "used.so"]
    assert cached.find("key of used"), "its record was used as well"
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
    cases = [(1.0, 2, two), (2.0, 2, two), (1.0, 3, two), (1.0, 2, three), (1.0, 2, two.double())]
    digests = [graph_digest(traced(constant, power), [x]) for constant, power, x in cases]
    assert len(set(digests)) == len(cases)
    assert graph_digest(traced(1.0, 2), [two]) == digests[0]
    assert digest_of("a", "b") == digest_of("a", "b") != digest_of("ab")
    before = digest_of("a")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    assert digest_of("a") != before


def test_processes_that_start_together_build_a_library_once(cache: Path) -> None:
    order: list[str] = []

    def build(name: str) -> None:
        with Cache().lock("graph"):
            order.append(f"{name} begins")
            time.sleep(0.3)
            order.append(f"{name} ends")

    threads = [Thread(target=build, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = (line.split()[0] for line in order[::2])
    assert order == [f"{first} begins", f"{first} ends", f"{second} begins", f"{second} ends"]


def test_a_process_that_never_finishes_is_not_waited_for_forever(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldsl.compile.cache.LOCK_SECONDS", 0.2)
    started = time.monotonic()
    with Cache().lock("graph"), Cache().lock("graph"):
        waited = time.monotonic() - started
    assert 0.2 <= waited < 30
