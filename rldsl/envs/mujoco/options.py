"""The options of a MuJoCo task, completed with Gymnasium's defaults."""

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from rldsl.spec.catalog import MuJoCoId
from rldsl.spec.mujoco_options import DEFAULTS


def complete(id: MuJoCoId, given: Mapping[str, Any]) -> SimpleNamespace:
    """All options of a task as attributes, with Gymnasium's defaults for those not given."""
    return SimpleNamespace(**native({**DEFAULTS[id], **given}))


def native(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as Gymnasium's keyword arguments: None in a range becomes an infinite bound."""
    return {name: _closed(*value) if isinstance(value, list | tuple) else value for name, value in options.items()}


def _closed(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high
