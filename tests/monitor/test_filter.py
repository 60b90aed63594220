"""The query language of the filter."""

from __future__ import annotations

import pytest

from rldsl.monitor.filter import FilterError, parse

NUMBERS = {"return": 412.5, "gamma": 0.99, "age": 1800.0, "frames": 2e6, "net": "MLP", "flag": True}


class Fields:
    """What a filter tests: texts by field, and `NUMBERS`."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts

    def text(self, field: str) -> str:
        return self.texts.get(field, "").lower()

    def everything(self) -> str:
        return "\n".join(self.texts.values()).lower()

    def value(self, name: str) -> object:
        return NUMBERS.get(name)


HOPPER = Fields(status="failed", env="Hopper-v5", algo="ppo", experiment="hopper/ppo", id="5bd3-s1", seed="1")


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
        ("return>400", True),
        ("return>412.5", False),
        ("return>=412.5 gamma>=.99 age<1h", True),
        ("age<10m", False),
        ("frames=2M", True),
        ("frames<1.9M", False),
        ("-return>400", False),
        ("return!=3", True),
        ("lam>0.9", False),
        ("net=mlp", True),
        ("net!=cnn", True),
        ("net>3", False),
        ("flag=true", True),
        ("return>", True),
        ("/hop.*v5/", True),
        ("env:/^hopper-v[0-9]$/", True),
        ("env:/^walker/", False),
        ("-/walker/", True),
        ("/ppo$/ status:failed", True),
        ("walker or hopper", True),
        ("walker or status:done", False),
        ("status:done or return>400 algo:ppo", True),
        ("or", True),
        ('env:"Hopper-v5"', True),
        ("experiment:hopper/ppo", True),
    ],
)
def test_queries(query: str, accepted: bool) -> None:
    assert parse(query).accepts(HOPPER) is accepted


def test_seeds_are_compared_exactly() -> None:
    assert not parse("seed:1").accepts(Fields(seed="10"))


def test_an_unknown_field_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(FilterError, match="stat is not a field; did you mean status"):
        parse("stat:failed")


def test_an_unknown_status_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(FilterError, match="runing is not a status; did you mean running"):
        parse("-status:failed,runing")


def test_an_empty_query_is_false() -> None:
    assert not parse("  ")
    assert parse("a")


def test_a_wrong_number_name_or_pattern_is_an_error() -> None:
    with pytest.raises(FilterError, match="high is not a number"):
        parse("return>high")
    with pytest.raises(FilterError, match="soon is not a number such as 30m or 2h"):
        parse("age<soon")
    with pytest.raises(FilterError, match="no session has a gama; did you mean"):
        parse("gama>0.9", ["agent.gamma", "entropy"])
    with pytest.raises(FilterError, match="is not a regular expression"):
        parse("/(/")
    assert parse("gamma>0.9", ["agent.gamma"]) and parse("entropy<1", ["entropy"])


def test_only_filters_by_age_change_with_time() -> None:
    assert parse("return>3 or age<1h").timed
    assert not parse("return>3 left<1h").timed
