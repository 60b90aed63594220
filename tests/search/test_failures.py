"""Which failures have the same reason, and when they stop a search."""

from __future__ import annotations

import pytest

from rldsl.search.failures import FailureRules, describe_failures, failure_groups
from rldsl.search.history import History

MEMORY = "RuntimeError: cannot allocate {} MB at 0x7f{}"


def ended(*reasons: str | None) -> History:
    """Trials that ended in this order; None: finished."""
    history = History()
    for trial, reason in enumerate(reasons):
        history = history.after({"event": "suggested", "trial": trial, "point": {}, "id": str(trial)})
        history = history.after({"event": "started", "trial": trial, "rung": 0, "seeds": [0]})
        fact = {"event": "finished", "values": {"0": 1.0}} if reason is None else {"event": "failed", "reason": reason}
        history = history.after({**fact, "trial": trial, "rung": 0})
    return history


def test_reasons_that_differ_in_numbers_are_the_same() -> None:
    history = ended(MEMORY.format(512, "aa1"), "diverged: nan", MEMORY.format("1,024.5", "b02"))
    assert [[trial.number for trial in group] for group in failure_groups(history)] == [[0, 2], [1]]
    assert describe_failures(history) == f"{MEMORY.format(512, 'aa1')} (2 trials); diverged: nan (1 trial)"


def test_numbers_in_scientific_notation_are_numbers() -> None:
    reasons = [f"SAC.tau = {tau} is too small" for tau in ("0.0001", "1e-05", "-2.5e-07")]
    assert "the first 3 trials failed" in str(FailureRules().reason_to_stop(ended(*reasons)))


def test_the_first_trials_failing_alike_is_not_the_fault_of_their_settings() -> None:
    lost = "ModuleNotFoundError: No module named 'box'"
    said = FailureRules().reason_to_stop(ended(lost, lost, lost, lost))
    assert said == f"the first 4 trials failed with the same error: {lost}"
    assert FailureRules().reason_to_stop(ended(lost, lost)) is None
    assert FailureRules().reason_to_stop(ended(None, lost, lost, lost)) is None, "another trial could be trained"
    assert FailureRules().reason_to_stop(ended(lost, "another", lost, lost)) is None
    assert FailureRules().reason_to_stop(ended(*["diverged: nan"] * 9)) is None, "a result of their settings"


@pytest.mark.parametrize(
    ("rules", "failures", "said"),
    [
        (FailureRules(fail_fast=True), 1, "trial 1 failed: diverged: nan"),
        (FailureRules(max_failures=2), 1, None),
        (FailureRules(max_failures=2), 2, "2 trials failed, the limit is 2: diverged: nan (2 trials)"),
        (FailureRules(), 5, None),
    ],
)
def test_rules(rules: FailureRules, failures: int, said: str | None) -> None:
    assert rules.reason_to_stop(ended(None, *["diverged: nan"] * failures)) == said
    assert rules.reason_to_stop(ended(None, None)) is None
