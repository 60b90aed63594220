"""Formats numbers, durations and settings for tables and messages."""

from __future__ import annotations

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
