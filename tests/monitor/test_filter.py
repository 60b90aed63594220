"""The query language of the filter."""

from __future__ import annotations

import pytest

from rldsl.monitor.filter import FilterError, parse

HOPPER = {
    "status": "failed",
    "env": "Hopper-v5",
    "algo": "ppo",
    "experiment": "hopper/ppo",
    "id": "5bd3-s1",
    "seed": "1",
}


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        ("", True),
        ("status:failed env:Hopper algo:ppo", True),
        ("status:failed env:walker", False),
        ("STATUS", False),
        ("env:hopper", True),
        ("env:HOPPER", True),
        ("status:done,failed", True),
        ("status:done,new", False),
        ("-status:failed", False),
        ("-status:done", True),
        ("seed:1", True),
        ("seed:10", False),
        ("id:5b", True),
        ("hopper", True),
        ("walker", False),
        ("-hopper", False),
        ("status:", True),
        ("status:fai", True),
        ("-", True),
    ],
)
def test_queries(query: str, accepted: bool) -> None:
    assert parse(query).accepts(HOPPER) is accepted


def test_seeds_are_compared_exactly() -> None:
    assert not parse("seed:1").accepts({**HOPPER, "seed": "10"})


def test_an_unknown_field_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(FilterError, match="stat is not a field; did you mean status"):
        parse("stat:failed")


def test_an_empty_query_is_false() -> None:
    assert not parse("  ")
    assert parse("a")
