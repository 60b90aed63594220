"""Whether the training steps of an agent are compiled, and what came of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor

from rldsl.compile import kernels
from rldsl.compile.step import CompiledStep
from rldsl.spec.compute import Compute

COMPILE_FROM_STEPS = 20_000
"""With `compile="auto"`, sessions with at least this many gradient steps are compiled: fewer do not make up for the
twenty seconds that compilation takes the first time."""
CPP_COMPILERS = ("g++", "c++", "clang++")


class Compilation:
    """The compiled steps of one agent. After a failure all further steps run eagerly."""

    def __init__(self, enabled: bool = False, device: str = "cpu") -> None:
        self.enabled = enabled
        self.failure: str | None = None
        """Why steps that should have been compiled run eagerly."""
        self._planned_kernels = "avx512" if enabled and device == "cpu" and kernels.available() else "torch"
        self._kernels: set[str] = set()

    @classmethod
    def choose(cls, compute: Compute, gradient_steps: int, recurrent: bool = False) -> Compilation:
        """Compiles if the spec asks for it, or if the session is long enough; recurrent networks only on request,
        because their unrolled loop over time takes very long to compile."""
        worthwhile = gradient_steps >= COMPILE_FROM_STEPS and not recurrent
        if compute.compile == "off" or (compute.compile == "auto" and not worthwhile):
            return cls()
        if compute.device == "cpu" and not any(map(shutil.which, CPP_COMPILERS)):
            compilation = cls()
            compilation.fail("no C++ compiler was found")
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
