"""JSON that others may have written."""

from __future__ import annotations

import pytest

from rldsl.spec.json_text import parse_json


def test_pairs_of_surrogates_are_characters_and_halves_are_refused() -> None:
    assert parse_json(r'{"name": "\ud83d\ude00"}') == {"name": "\U0001f600"}
    for text in (r'["\ud800"]', r'{"\uDFFF": 1}', rb'["a\ud800b"]'):
        with pytest.raises(ValueError, match="half a character"):
            parse_json(text)
