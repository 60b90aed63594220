"""Numbers, times and values as people read them."""

from __future__ import annotations

from typing import Any


def amount(number: float) -> str:
    """4000000 as 4M, 12500 as 12.5k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.4g}"


def duration(seconds: float | None) -> str:
    """3700 as 1h 02m; a dash where nothing is known."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02.0f}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours < 48 else f"{hours // 24}d {hours % 24:02d}h"


def value(one: Any) -> str:
    """A setting in a table: short, exact."""
    if isinstance(one, dict) and "kind" in one:
        return str(one.get("id") or one["kind"])
    if isinstance(one, float):
        return f"{one:.6g}"
    text = str(one)
    return text if len(text) <= 40 else f"{text[:37]}..."


def count(number: int, noun: str) -> str:
    """1 trial, 2 trials."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
