"""Failed trials of a search: which have the same reason, and whether the search should stop because of them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from rldsl.search.history import History, TrialHistory

SYSTEMATIC = 3
"""If the first trials that end, this many, fail with the same error, it is not the fault of their settings."""
DIVERGED = "diverged"
"""How the reason of a session begins that diverged: this is a result of its settings, not an error."""
_NUMBERS = re.compile(r"0x[0-9a-f]+|-?\d[\d.,]*(e[-+]?\d+)?")


@dataclass(frozen=True)
class FailureRules:
    """When failed trials end a search."""

    fail_fast: bool = False
    max_failures: int | None = None

    def reason_to_stop(self, history: History) -> str | None:
        """A sentence if the search should stop; None if it goes on."""
        groups = failure_groups(history)
        failed = sum(map(len, groups))
        if not failed:
            return None
        if systematic := _systematic(history):
            return f"the first {len(systematic)} trials failed with the same error: {systematic[0].failed}"
        if self.fail_fast:
            first = next(trial for number, _ in history.arrivals if (trial := history.trials[number]).failed)
            return f"trial {first.number} failed: {first.failed}"
        if self.max_failures is not None and failed >= self.max_failures:
            return f"{failed} trials failed, the limit is {self.max_failures}: {describe_failures(history)}"
        return None


def failure_groups(history: History) -> list[list[TrialHistory]]:
    """Failed trials with the same reason, numbers in it aside; the largest group first."""
    groups: dict[str, list[TrialHistory]] = defaultdict(list)
    for trial in history.trials:
        if trial.failed is not None:
            groups[same_reason(trial.failed)].append(trial)
    return sorted(groups.values(), key=lambda group: (-len(group), group[0].number))


def describe_failures(history: History) -> str:
    """Each reason once, with the number of trials that it ended."""
    groups = failure_groups(history)
    return "; ".join(f"{group[0].failed} ({len(group)} trial{'s' * (len(group) > 1)})" for group in groups)


def same_reason(reason: str) -> str:
    """Equal for reasons that differ only in numbers, such as sizes and addresses."""
    return _NUMBERS.sub("#", reason)


def _systematic(history: History) -> list[TrialHistory]:
    """The trials that failed with the same error before any other trial has ended, if they are enough."""
    first: list[TrialHistory] = []
    for number, _ in history.arrivals:
        reason = history.trials[number].failed
        if reason is None or (first and same_reason(reason) != same_reason(first[0].failed or "")):
            break
        first.append(history.trials[number])
    enough = len(first) >= SYSTEMATIC and not (first[0].failed or "").startswith(DIVERGED)
    return first if enough else []
