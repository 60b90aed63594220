"""Converts records of earlier schema versions to the current one."""

from __future__ import annotations

from typing import Any

GRADIENT = frozenset({"reinforce", "sarsa", "a2c", "ppo", "dqn", "sac", "crossq"})
REPLAY = frozenset({"dqn", "sac", "crossq"})
SOFT = frozenset({"sac", "crossq"})

RENAMED_IN_2: tuple[tuple[frozenset[str], str, str], ...] = (
    (GRADIENT, "grad_clip", "max_grad_norm"),
    (REPLAY, "start", "learning_starts"),
    (REPLAY, "newest", "include_newest"),
    (SOFT, "twins", "critic_reduction"),
    (SOFT, "first_alpha", "init_alpha"),
)
"""Fields that schema 2 renamed: the kinds of agents that have them, the old name and the new one."""


def migrate_trial(trial: Any, schema: Any) -> Any:
    """The JSON of a trial with the current field names. Anything that is not a trial is returned unchanged."""
    agent = trial.get("agent") if isinstance(trial, dict) else None
    if schema != 1 or not isinstance(agent, dict):
        return trial
    names = {old: new for kinds, old, new in RENAMED_IN_2 if agent.get("kind") in kinds}
    renamed = {names[name] if name in names else str(name): value for name, value in agent.items()}
    return {**trial, "agent": _with_whole_value_loss(renamed)}


def _with_whole_value_loss(agent: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 halved the value loss of PPO with `value_clip`."""
    value_coef = agent.get("value_coef")
    if agent.get("kind") != "ppo" or not agent.get("value_clip") or not isinstance(value_coef, float):
        return agent
    return {**agent, "value_coef": value_coef / 2}
