"""Gradient steps and replay memory of a session, which its spec does not show directly."""

from __future__ import annotations

from rldsl.memory.replay_size import ReplayShape
from rldsl.spec.environment import Atari, Environment
from rldsl.spec.experiment import Trial
from rldsl.spec.known import SIZES
from rldsl.spec.off_policy import DQN, OffPolicy


def work(trial: Trial) -> str | None:
    """A line for the plan; None for agents without a replay buffer."""
    agent = trial.agent
    if not isinstance(agent, OffPolicy):
        return None
    updates = agent.updates(trial.budget.frames)
    size = replay_bytes(agent, trial.env)
    memory = "" if size is None else f" in {_megabytes(size)}"
    return (
        f"{updates:,} updates a session ({agent.updates_per_frame:g} per frame after {agent.learning_starts:,}), "
        f"a replay of {agent.buffer:,} transitions{memory}"
    )


def replay_bytes(agent: OffPolicy, env: Environment) -> int | None:
    """The size of a session's replay buffer, without final observations; None if the spaces are unknown."""
    prioritized = isinstance(agent, DQN) and agent.prioritized is not None
    if isinstance(env, Atari):
        seen = (env.stack, 84, 84)
        shape = ReplayShape(agent.buffer, 1, env.num_envs, seen, "uint8", (), env.stack, prioritized)
        return shape.bytes()
    if env.id not in SIZES:
        return None
    observed, acted = SIZES[env.id]
    action = () if env.actions == "discrete" else (acted,)
    return ReplayShape(agent.buffer, 1, env.num_envs, (observed,), action=action, prioritized=prioritized).bytes()


def _megabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size / 1e6, 0.1):.3g} MB"
