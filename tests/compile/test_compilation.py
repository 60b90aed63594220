"""When steps are compiled, what a compiled update computes, and that failures end in eager training."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from rldsl import DQN, MLP, PPO, SAC, Adam, Classic, experiment
from rldsl.agents.update import Batch, Loss, Update
from rldsl.compile import COMPILE_FROM_STEPS, Compilation, inductor
from rldsl.nets.layout import Layout, Params
from rldsl.spec.agent import Agent
from rldsl.spec.compute import Compute
from rldsl.spec.session import Session
from rldsl.store.provenance import Provenance
from rldsl.train.pack import Pack, open_directories
from tests.project import events, rows, work

LAYOUT = Layout.of({"weight": (3, 2), "bias": (1, 2)})
M, B = 3, 5
LR, MAX_NORM = torch.tensor([0.1, 0.01, 0.03]), torch.tensor([0.2, float("inf"), 1e3])
SCALE = {"scale": torch.tensor([1.0, 2.0, 0.5])}
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))),
    reason="COMPILED UPDATES ARE NOT TESTED: there is no C++ compiler on this machine",
)


def squared_error(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
    predicted = torch.baddbmm(params["bias"], batch["x"], params["weight"])
    loss = coefficients["scale"] * (predicted - batch["y"]).square().flatten(1).mean(1)
    return loss, loss.unsqueeze(1)


def absolute_error(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
    predicted = torch.baddbmm(params["bias"], batch["x"], params["weight"])
    loss = coefficients["scale"] * (predicted - batch["y"]).abs().flatten(1).mean(1)
    return loss, loss.unsqueeze(1)


def batches(count: int) -> list[dict[str, Tensor]]:
    random = torch.Generator().manual_seed(0)
    drawn = [torch.randn(M, B, 5, generator=random) for _ in range(count)]
    return [{"x": one[..., :3], "y": one[..., 3:]} for one in drawn]


def update(compilation: Compilation | None = None, loss: Loss = squared_error) -> Update:
    flat = torch.randn(M, LAYOUT.size, generator=torch.Generator().manual_seed(1))
    return Update(LAYOUT, flat, Adam(), loss, compilation)


def assert_same(one: Update, other: Update) -> None:
    torch.testing.assert_close(one.flat, other.flat, rtol=1e-4, atol=1e-5)
    for name, tensor in one.state.items():
        torch.testing.assert_close(tensor, other.state[name], rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# --- When -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "steps", "recurrent", "expected"),
    [
        ("off", 10 * COMPILE_FROM_STEPS, False, False),
        ("on", 1, False, True),
        ("on", 1, True, True),
        ("auto", COMPILE_FROM_STEPS - 1, False, False),
        ("auto", COMPILE_FROM_STEPS, False, True),
        ("auto", COMPILE_FROM_STEPS, True, False),
    ],
)
def test_long_sessions_are_compiled_if_there_is_a_compiler(
    choice: Any, steps: int, recurrent: bool, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g++").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Compilation.choose(Compute(compile=choice), steps, recurrent).enabled is expected


def test_without_a_compiler_updates_run_eagerly_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    compilation = Compilation.choose(Compute(compile="auto"), COMPILE_FROM_STEPS)
    sentence = "updates run eagerly, without compilation: no C++ compiler was found"
    assert compilation.notes() == {"compiled": False, "kernels": "torch", "compile_failure": sentence}
    assert capsys.readouterr().err == f"rldsl: {sentence}\n"
    for choice, steps in (("auto", 1), ("off", COMPILE_FROM_STEPS)):
        compilation = Compilation.choose(Compute(compile=choice), steps)  # type: ignore[arg-type]
        assert compilation.notes() == {"compiled": False, "kernels": "torch"}
    assert capsys.readouterr().err == "", "nothing failed, because nothing was to be compiled"


def test_a_gpu_needs_triton_and_a_c_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    on_gpu = Compute(compile="on", device="cuda")
    monkeypatch.setitem(sys.modules, "triton", None)
    assert Compilation.choose(on_gpu, 1).notes()["compile_failure"].endswith(": Triton is not installed")
    triton = ModuleType("triton")
    triton.__spec__ = ModuleSpec("triton", None)
    monkeypatch.setitem(sys.modules, "triton", triton)
    failure = Compilation.choose(on_gpu, 1).notes()["compile_failure"]
    assert failure == "updates run eagerly, without compilation: no C compiler was found, which Triton needs"
    assert capsys.readouterr().err.count("updates run eagerly") == 2
    monkeypatch.setenv("CC", "/opt/cc")
    assert Compilation.choose(on_gpu, 1).enabled
    monkeypatch.delenv("CC")
    (tmp_path / "gcc").touch(mode=0o755)
    assert Compilation.choose(on_gpu, 1).enabled, "and no C++ compiler"


# --- What -------------------------------------------------------------------------


@needs_compiler
def test_a_compiled_update_equals_the_eager_one_and_each_has_its_own_loss() -> None:
    """Two in one process, as PPO and its self-imitation are: code compiled for one must not serve the other."""
    compilation = Compilation(True)
    for loss in (squared_error, absolute_error):
        eager, compiled = update(loss=loss), update(compilation, loss)
        for step, batch in enumerate(batches(5)):
            metrics = [one(LR / (1 + step), MAX_NORM, SCALE, batch) for one in (eager, compiled)]
            torch.testing.assert_close(*metrics, rtol=1e-4, atol=1e-5)
        assert_same(eager, compiled)
    assert compilation.notes()["compiled"] is True


@needs_compiler
def test_arguments_that_are_the_same_tensor_at_first_may_differ_later() -> None:
    compiled, eager = update(Compilation(True)), update()
    same, other = torch.full((M,), 0.1), torch.full((M,), 0.7)
    for max_norm in (same, other):
        for one in (compiled, eager):
            one(same, max_norm, SCALE, batches(1)[0])
    torch.testing.assert_close(compiled.flat, eager.flat)


@needs_compiler
def test_the_path_for_gpus_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU, which is all that is needed to see that its graph and its inputs fit together."""
    in_memory = inductor.compile_in_memory

    def compile_graph(graph: torch.fx.GraphModule, examples: list[Tensor]) -> Callable[[], inductor.Built]:
        built = in_memory(graph, examples)
        return lambda: built

    monkeypatch.setattr(inductor, "compile_graph", compile_graph)
    compilation = Compilation(True, "cuda")
    eager, compiled = update(), update(compilation)
    for batch in batches(3):
        metrics = [one(LR, MAX_NORM, SCALE, batch) for one in (eager, compiled)]
        torch.testing.assert_close(*metrics, rtol=1e-4, atol=1e-5)
    assert_same(eager, compiled)
    assert compilation.notes() == {"compiled": True, "kernels": "torch"}


class Counter:
    """A step that uses a tensor which is not an argument, and changes one that is."""

    def __init__(self) -> None:
        self.factor = torch.tensor(2.0)

    def step(self, total: Tensor, x: Tensor) -> Tensor:
        total.add_(x * self.factor)
        return total + 1


@needs_compiler
def test_a_step_may_use_tensors_that_are_not_arguments() -> None:
    counter, total = Counter(), torch.zeros(3)
    step = Compilation(True).compiled(counter.step, "counter", constants=1)
    for factor in (2.0, 5.0):
        counter.factor.fill_(factor)
        assert torch.equal(step(total, torch.ones(3)), total + 1)
    assert total.tolist() == [7.0, 7.0, 7.0]


# --- Failures ---------------------------------------------------------------------


def fails(*_: Any, **__: Any) -> Any:
    raise RuntimeError("this torch is different\nand says more about it")


def breaks_while_running(graph: torch.fx.GraphModule, examples: list[Tensor]) -> Callable[[], inductor.Built]:
    """Writes to all inputs before it fails, as a library that breaks half way may do."""

    def run(inputs: list[Tensor]) -> Any:
        for tensor in inputs:
            tensor.fill_(7)
        fails()

    return lambda: inductor.Built(run, "avx512", None)


FAILURES: dict[str, tuple[str, Callable[..., Any]]] = {
    "lowering": ("lower", fails),
    "building": ("_build", fails),
    "loading": ("load", lambda _: None),
    "running": ("compile_graph", breaks_while_running),
}


@pytest.mark.parametrize(("function", "replacement"), FAILURES.values(), ids=FAILURES)
def test_whatever_fails_the_update_runs_eagerly_from_the_same_parameters(
    function: str,
    replacement: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    if function == "load":
        monkeypatch.setattr(inductor, "_build", lambda *_: __file__)
    monkeypatch.setattr(inductor, function, replacement)
    compilation = Compilation(True)
    eager, failing, other = update(), update(compilation), update(compilation, absolute_error)
    for batch in batches(3):
        before = {name: tensor.clone() for name, tensor in batch.items()}
        metrics = [one(LR, MAX_NORM, SCALE, batch) for one in (eager, failing)]
        torch.testing.assert_close(*metrics, rtol=1e-5, atol=1e-6)
        other(LR, MAX_NORM, SCALE, batch)
        for name, tensor in before.items():
            assert torch.equal(batch[name], tensor)
    assert_same(eager, failing)
    said = capsys.readouterr().err
    assert said.count("\n") == said.count("rldsl: updates run eagerly, without compilation: RuntimeError: ") == 1
    notes = compilation.notes()
    assert (notes["compiled"], notes["kernels"]) == (False, "torch")
    assert f"rldsl: {notes['compile_failure']}\n" == said


def test_a_step_that_cannot_be_traced_runs_eagerly(capsys: pytest.CaptureFixture[str]) -> None:
    def data_dependent(params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        loss, metrics = squared_error(params, batch, coefficients)
        return (loss, metrics) if batch["x"].sum().item() > 0 else (2 * loss, 2 * metrics)

    eager, failing = update(loss=data_dependent), update(Compilation(True), data_dependent)
    for batch in batches(3):
        torch.testing.assert_close(*(one(LR, MAX_NORM, SCALE, batch) for one in (eager, failing)))
    assert_same(eager, failing)
    assert capsys.readouterr().err.count("updates run eagerly") == 1


def trial(agent: Agent, env: str, compile: Any) -> Session:
    builder = experiment("x").env(Classic(env, num_envs=4)).agent(agent).frames(768).log_every(64)
    return Session(experiment="x", trial=builder.compute(compile=compile).build().base(), seed=0)


def train(runs: Path, session: Session, stop: Callable[[Pack], str | None] = lambda pack: None) -> Path:
    pack = Pack([session], open_directories(runs, [session]), Provenance({}, ""))
    pack.run(lambda: stop(pack))
    return runs / session.directory


REPLAY: dict[str, Any] = {"learning_starts": 64, "updates_per_frame": 0.25, "batch": 16, "net": MLP((16,))}
AGENTS: dict[str, tuple[Agent, str]] = {
    "ppo": (PPO(rollout=32, minibatch=64, epochs=2), "CartPole-v1"),
    "dqn": (DQN(**REPLAY), "CartPole-v1"),
    "sac": (SAC(**REPLAY), "Pendulum-v1"),
}


@pytest.mark.parametrize(("agent", "env"), AGENTS.values(), ids=AGENTS)
def test_a_session_whose_compilation_fails_trains_as_an_eager_one_and_resumes(
    agent: Agent, env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inductor, "lower", fails)
    eager = train(tmp_path / "eager", trial(agent, env, "off"))
    failed = train(tmp_path / "failed", trial(agent, env, "on"))
    sentence = "updates run eagerly, without compilation: RuntimeError: this torch is different"
    assert capsys.readouterr().err.count(f"rldsl: {sentence}\n") == 1
    started, later = (next(one for one in events(failed) if one["event"] == name) for name in ("started", "compute"))
    assert started["compiled"] is True
    assert (later["compiled"], {**started, **later}["kernels"]) == (False, "torch")
    assert later["compile_failure"] == sentence
    assert [one["event"] for one in events(eager)].count("compute") == 0
    expected, got = work(eager), work(failed)
    assert len(expected) == len(got) == 12
    for one, other in zip(expected, got, strict=True):
        for name in one:
            equal = pytest.approx(float(one[name] or "nan"), rel=2e-2, abs=2e-3, nan_ok=True)
            assert float(other[name] or "nan") == equal, name

    halfway = lambda pack: "halfway" if pack.frame >= 384 else None  # noqa: E731
    train(tmp_path / "resumed", trial(agent, env, "on"), halfway)
    resumed = train(tmp_path / "resumed", trial(agent, env, "on"))
    assert work(resumed) == work(failed)


SCRIPT = """
from pathlib import Path
from types import ModuleType
from rldsl import PPO, Classic, experiment
from rldsl.spec.session import Session
from rldsl.store.provenance import Provenance
from rldsl.train.pack import Pack, open_directories

builder = experiment("x").env(Classic("CartPole-v1", num_envs=4)).agent(PPO(rollout=32, minibatch=64, epochs=2))
trial = builder.frames(512).compute(compile="on").build().base()
sessions = [Session(experiment="x", trial=trial, seed=0)]
print(Pack(sessions, open_directories(Path("runs"), sessions), Provenance({}, "")).run(lambda: None))
"""


def test_a_broken_compiler_ends_in_eager_training(tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    for name in ("g++", "c++", "clang++", "gcc", "cc"):
        (broken / name).write_text("#!/bin/sh\necho 'internal compiler error' >&2\nexit 1\n")
        (broken / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{broken}:{os.environ['PATH']}", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch")}
    env.pop("CXX", None)
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
    assert done.stderr.count("rldsl: updates run eagerly, without compilation: ") == 1
    (journal,) = (tmp_path / "runs").rglob("journal.jsonl")
    (later,) = (one for one in events(journal.parent) if one["event"] == "compute")
    assert later["compiled"] is False
    assert "rldsl: " + later["compile_failure"] in done.stderr
    assert all(float(row["policy_loss"]) == float(row["policy_loss"]) for row in rows(journal.parent)[-1:])
