"""JSON that others may have written: whatever is wrong with it is a `ValueError` in one sentence."""

from __future__ import annotations

import json
import re
from typing import Any

MOST_DEPTH = 50
"""Levels of nested lists and objects; no file of rldsl comes near."""
LARGEST = 10**18
"""The largest whole number."""
_SURROGATE: dict[type, Any] = {str: re.compile(r"\\u[dD][89a-fA-F]"), bytes: re.compile(rb"\\u[dD][89a-fA-F]")}
_LONG_NUMBER: dict[type, Any] = {str: re.compile(r"\d{18}"), bytes: re.compile(rb"\d{18}")}


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; a `ValueError` if it is not JSON or nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _SURROGATE[type(text)].search(text):
        _refuse_half_characters(value)
    if _brackets(text) > MOST_DEPTH or _LONG_NUMBER[type(text)].search(text):
        return checked_depth(value)
    return value


def _refuse_half_characters(value: Any) -> None:
    """A lone surrogate is valid JSON, but no file name or terminal can have it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise ValueError("it contains half a character") from None


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The same for a text that should be an object."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def checked_depth(value: Any) -> Any:
    """The value; a `ValueError` if it is nested too deeply, or contains a whole number that is too large."""
    level, depth = [[value]], 0
    while level := [inner for one in level for inner in _inner(one)]:
        depth += 1
        if any(isinstance(one, int) and abs(one) > LARGEST for one in level):
            raise ValueError("it contains a number that is too large")
        if depth > MOST_DEPTH:
            raise ValueError("it is nested too deeply")
    return value


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _brackets(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return text.count(b"[") + text.count(b"{")
    return text.count("[") + text.count("{")
