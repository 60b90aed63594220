"""Formats numbers, durations and settings for tables and messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rldsl.spec.base import Kind
from rldsl.spec.search import plain


def amount(number: float) -> str:
    """4000000 as `4M`, 12500 as `12.5k`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.4g}"


def duration(seconds: float | None) -> str:
    """3700 as `1h 01m`; None as a dash."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02.0f}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours < 48 else f"{hours // 24}d {hours % 24:02d}h"


TIME_STEPS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12, 24, 48)),
)
"""Seconds between the labels of a time axis."""


def time_ticks(low: float, high: float, most: int = 8) -> dict[float, str]:
    """Labels of a time axis, by seconds: at round times, no two of them the same."""
    step = next((step for step in TIME_STEPS if (high - low) / step <= most), None)
    if step is None:  # many days
        step = 86400 * math.ceil((high - low) / most / 86400)
    ticks = [number * step for number in range(math.ceil(max(0.0, low) / step), math.floor(high / step) + 1)]
    return {tick: f"{tick:.4g}s" if step < 1 and tick < 60 else duration(tick) for tick in ticks}


LONGEST = 40
"""Characters of a setting in a table."""
SHORTENED = ("agent.", "budget.")
"""Parts of an experiment that the name of a setting does without."""


def value(setting: Any) -> str:
    """A setting for a table: a spec as `Linear(0.001)`, floats with six digits, long texts shortened."""
    text = _text(setting)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def setting_name(path: str) -> str:
    """`agent.net.hidden` as `net.hidden`."""
    return next((path.removeprefix(part) for part in SHORTENED if path.startswith(part)), path)


def settings_text(settings: Mapping[str, Any]) -> str:
    """`lr=0.001 net.hidden=(256, 256)`: what tells a trial from the others of its experiment."""
    return " ".join(f"{setting_name(path)}={value(setting)}" for path, setting in settings.items())


def _text(setting: Any) -> str:
    if isinstance(setting, Mapping) and "kind" in setting:
        return _spec_text(setting)
    if isinstance(setting, float):
        return f"{setting:.6g}"
    if isinstance(setting, list | tuple):
        return f"({', '.join(map(_text, setting))}{',' if len(setting) == 1 else ''})"
    return str(setting)


def _spec_text(data: Mapping[str, Any]) -> str:
    """A spec as it is written in Python, without default values; environments by their id."""
    if "id" in data:
        return str(data["id"])
    kind = data["kind"]
    cls = next((family.kinds[kind] for family in Kind.__subclasses__() if kind in family.kinds), None)
    if cls is None:
        return str(kind)
    arguments = []
    for name, field in cls.model_fields.items():
        if name == "kind" or name not in data or data[name] == plain(field.get_default(call_default_factory=True)):
            continue
        text = _text(data[name])
        arguments.append(text if field.kw_only is False else f"{name}={text}")
    return f"{cls.__name__}({', '.join(arguments)})" if arguments else str(kind)


def count(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
