"""Formats numbers, durations and settings for tables and messages."""

from __future__ import annotations

import math
from typing import Any


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


def value(setting: Any) -> str:
    """A setting for a table: a spec by its id or kind, floats with six digits, long texts shortened."""
    if isinstance(setting, dict) and "kind" in setting:
        return str(setting.get("id") or setting["kind"])
    if isinstance(setting, float):
        return f"{setting:.6g}"
    text = str(setting)
    return text if len(text) <= 40 else f"{text[:37]}..."


def count(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
