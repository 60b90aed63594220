"""Resolves the implementation of a spec."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rldsl.spec.base import Kind
from rldsl.spec.errors import SpecError


def implementation(spec: Kind) -> Any:
    """The object that the spec's `implementation`, a `module:name`, refers to."""
    module, _, name = spec.implementation.partition(":")
    if not name:
        raise SpecError(f"{type(spec).__name__} has no implementation: set it to 'module:name'")
    try:
        return getattr(import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise SpecError(f"{type(spec).__name__} cannot run: {module}:{name} was not found ({error})") from None
