"""The file formats of exported policies: ONNX, and the programs of torch.export."""

from __future__ import annotations

import json
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rldsl.play.policy_module import PolicyModule
from rldsl.spec.errors import SpecError

Run: TypeAlias = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""The policy of a file: from the inputs to the outputs of its signature."""

ABOUT = "rldsl.json"
"""The file inside of a torch.export program that says what it is."""


@dataclass(frozen=True)
class Signature:
    """Names of the inputs and outputs, with examples for a batch of two."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]

    @classmethod
    def of(cls, module: PolicyModule) -> Signature:
        spaces = module.spaces
        dtype = torch.uint8 if spaces.observation_dtype == np.uint8 else torch.float32
        observation = torch.zeros((2, *spaces.observation_shape), dtype=dtype)
        if not module.recurrent:
            return cls({"observation": observation}, {"action": module(observation)})
        state = module.initial_state(observation)
        action, next_state = module(observation, state)
        return cls({"observation": observation, "state": state}, {"action": action, "next_state": next_state})

    def described(self, tensors: Mapping[str, Tensor]) -> dict[str, str]:
        """Type and shape by name, such as `float32 [N, 4]`."""
        return {
            name: f"{str(tensor.dtype).removeprefix('torch.')} [{', '.join(['N', *map(str, tensor.shape[1:])])}]"
            for name, tensor in tensors.items()
        }


class Format(ABC):
    """How a policy is written to a file and read back."""

    needs: tuple[str, ...] = ()
    """Packages of the extra `export`."""

    def check_installed(self) -> None:
        if missing := [name for name in self.needs if find_spec(name) is None]:
            raise SpecError(f"{', '.join(missing)} is not installed: pip install 'rldsl[export]'")

    @abstractmethod
    def write(self, module: PolicyModule, signature: Signature, file: Path, about: Mapping[str, Any]) -> None:
        """Writes the policy; `about` says where it comes from."""

    @abstractmethod
    def read(self, file: Path, signature: Signature) -> Run:
        """The policy in the file."""


class ONNX(Format):
    """Run by onnxruntime and many others, without PyTorch."""

    needs = ("onnx", "onnxscript", "onnxruntime")

    def write(self, module: PolicyModule, signature: Signature, file: Path, about: Mapping[str, Any]) -> None:
        with _quiet():
            program = torch.onnx.export(_program(module, signature), dynamo=True, verbose=False, **_names(signature))
            assert program is not None
            for name, value in about.items():
                program.model.metadata_props[name] = str(value)
            program.save(str(file), external_data=False)

    def read(self, file: Path, signature: Signature) -> Run:
        import onnxruntime

        session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(list(signature.outputs), dict(zip(signature.inputs, inputs, strict=True)))


class TorchProgram(Format):
    """Run by PyTorch without rldsl: `torch.export.load(file).module()`."""

    def write(self, module: PolicyModule, signature: Signature, file: Path, about: Mapping[str, Any]) -> None:
        with _quiet():
            torch.export.save(_program(module, signature), file, extra_files={ABOUT: json.dumps(about)})

    def read(self, file: Path, signature: Signature) -> Run:
        program = torch.export.load(file).module()

        def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            outputs = program(*map(torch.from_numpy, inputs))
            return [one.numpy() for one in (outputs if isinstance(outputs, tuple) else (outputs,))]

        return run


FORMATS: dict[str, Format] = {".onnx": ONNX(), ".pt2": TorchProgram()}


def _program(module: PolicyModule, signature: Signature) -> torch.export.ExportedProgram:
    """The traced module, for any batch size."""
    batch = torch.export.Dim.DYNAMIC
    shapes = {name: {0: batch} for name in signature.inputs}
    with _quiet():
        return torch.export.export(module, tuple(signature.inputs.values()), dynamic_shapes=shapes, strict=False)


def _names(signature: Signature) -> dict[str, Any]:
    return {"input_names": list(signature.inputs), "output_names": list(signature.outputs)}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of torch's exporter about its own internals."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
