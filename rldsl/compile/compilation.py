"""Whether the training steps of an agent are compiled, and what came of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from rldsl.compile import kernels
from rldsl.compile.step import CompiledStep
from rldsl.spec.compute import Compute

COMPILE_FROM_STEPS = 20_000
"""With `compile="auto"`, sessions with at least this many gradient steps are compiled: fewer do not make up for the
twenty seconds that compilation takes the first time."""
CPP_COMPILERS = ("g++", "c++", "clang++")
C_COMPILERS = ("gcc", "clang", "cc")
"""Those that Triton looks for, unless the environment variable CC names one."""


class Compilation:
    """The compiled steps of one agent. After a failure all further steps run eagerly."""

    def __init__(self, enabled: bool = False, device: str = "cpu") -> None:
        self.enabled = enabled
        self.failure: str | None = None
        """Why steps that should have been compiled run eagerly."""
        self._planned_kernels = "avx512" if enabled and not on_gpu(device) and kernels.available() else "torch"
        self._kernels: set[str] = set()

    @classmethod
    def choose(cls, compute: Compute, gradient_steps: int, recurrent: bool = False) -> Compilation:
        """Compiles if the spec asks for it, or if the session is long enough; recurrent networks only on request,
        because their unrolled loop over time takes very long to compile."""
        worthwhile = gradient_steps >= COMPILE_FROM_STEPS and not recurrent
        if compute.compile == "off" or (compute.compile == "auto" and not worthwhile):
            return cls()
        if missing := missing_compiler(compute.device):
            compilation = cls()
            compilation.fail(missing)
            return compilation
        return cls(True, compute.device)

    def compiled(self, step: Callable[..., Tensor], cache_key: str | None = None, constants: int = 0) -> CompiledStep:
        """`step`, compiled at its first call; see `CompiledStep`."""
        return CompiledStep(step, self, cache_key, constants)

    def succeed(self, kernels: str) -> None:
        """Records that a step was compiled, and with which kernels."""
        self._kernels.add(kernels)

    def fail(self, reason: str) -> None:
        """Records why steps run eagerly, and prints it to the log of the session."""
        self.failure = f"updates run eagerly, without compilation: {reason}"
        print(f"rldsl: {self.failure}", file=sys.stderr, flush=True)  # noqa: T201 (the log of the session)

    def notes(self) -> dict[str, Any]:
        """For the journal: `compiled`, `kernels` ("avx512" or "torch") and, after a failure, the reason.

        Steps are compiled at their first call; until then `kernels` is what is planned.
        """
        if self.failure is not None:
            return {"compiled": False, "kernels": "torch", "compile_failure": self.failure}
        built = max(self._kernels, key="avx512".__eq__, default=self._planned_kernels)
        return {"compiled": self.enabled, "kernels": built}


def missing_compiler(device: str) -> str | None:
    """What compiling for a device lacks on this machine; None: nothing. For a GPU, Triton itself needs a C compiler."""
    if not on_gpu(device):
        return None if any(map(shutil.which, CPP_COMPILERS)) else "no C++ compiler was found"
    if find_spec("triton") is None:
        return "Triton is not installed"
    found = os.environ.get("CC") or next(filter(None, map(shutil.which, C_COMPILERS)), None)
    return None if found else "no C compiler was found, which Triton needs"


def on_gpu(device: str) -> bool:
    """Whether a resolved device is a GPU; `auto` that nobody has resolved is the CPU."""
    return device not in ("cpu", "auto")
