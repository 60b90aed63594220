"""Compilation of training steps: the only package that talks to torch's compiler.

`Compilation` decides whether the steps of an agent are compiled, `Compilation.compiled(step)` returns a function with
the signature of `step`, and `Compilation.notes()` reports what ran. A step that cannot be compiled, for whatever
reason, runs eagerly. The other functions are what the code of a step needs in order to compile well.
"""

from rldsl.compile.activity import CompilationInterrupted, activity
from rldsl.compile.compilation import COMPILE_FROM_STEPS, Compilation
from rldsl.compile.tensors import flush_denormals, gradients, separate_tensors

__all__ = [
    "COMPILE_FROM_STEPS",
    "Compilation",
    "CompilationInterrupted",
    "activity",
    "flush_denormals",
    "gradients",
    "separate_tensors",
]
