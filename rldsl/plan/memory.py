"""An estimate of the memory that a pack needs: its process and the replay buffers of its members."""

from __future__ import annotations

from rldsl.plan.work import replay_bytes
from rldsl.spec.experiment import Trial
from rldsl.spec.off_policy import OffPolicy

PROCESS_GB = 1.0
"""torch, environments, networks and rollouts."""
MARGIN = 1.25
"""For final observations of episodes, and what a checkpoint copies."""


def replay_gb(trial: Trial, members: int) -> float:
    """The replay buffers of a pack; 0 if it has none, or their size is unknown."""
    size = replay_bytes(trial.agent, trial.env) if isinstance(trial.agent, OffPolicy) else None
    return members * (size or 0) * MARGIN / 1e9


def process_gb(trial: Trial, members: int) -> float:
    """All that the process of a pack needs."""
    return PROCESS_GB + replay_gb(trial, members)
