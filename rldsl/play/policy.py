"""A trained policy, loaded from a session's checkpoint, as a function from observations to actions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Literal, TypeAlias

import numpy as np

from rldsl.agents.base import AgentContext, Learner, Policy
from rldsl.envs.contract import Continuous, Spaces, VectorEnv
from rldsl.envs.gym import GymnasiumEnv
from rldsl.spec.errors import SpecError, suggestion
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.store.checkpoint import Checkpoint, load_checkpoint
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

Which: TypeAlias = Literal["best", "last"]
CHECKPOINTS: tuple[Which, ...] = ("best", "last")


class TrainedPolicy:
    """Acts in the environment that it was trained in, one or many at a time, without learning.

    `policy(observation)` takes an observation as `gymnasium.make(...)` gives it, or a batch of them `[N, ...]`, and
    returns an action, or `[N, ...]` of them, in the environment's own range. Observations are normalised as in
    training.

    A recurrent policy remembers its episode. Call `reset()` when a new one begins. Changing the batch size or
    `deterministic` between two calls has the same effect.
    """

    def __init__(self, agent: Learner, env: VectorEnv, seed: int) -> None:
        self.spaces = env.spaces
        self._agent, self._seed = agent, seed
        self._to_gymnasium = gymnasium_actions(env)
        self._policies: dict[tuple[int, bool], Policy] = {}
        self._latest: tuple[int, bool] | None = None
        self._starts = np.ones((1, 1), bool)

    def __call__(self, observation: Any, deterministic: bool = True) -> Any:
        """The action, most likely or sampled, at an observation; or the actions `[N, ...]` at a batch of them."""
        observations = np.asarray(observation, self.spaces.observation_dtype)
        shape = self.spaces.observation_shape
        single = observations.shape == shape
        if single:
            observations = observations[None]
        if observations.shape[1:] != shape or not len(observations):
            raise SpecError(f"an observation should have the shape {shape}, or (N, ...), got {observations.shape}")
        actions = self._act(observations, deterministic)
        return actions[0] if single else actions

    def reset(self, ended: Any = None) -> None:
        """A new episode begins: in all environments, or in those of a batch where `ended` `[N]` is True."""
        if ended is None:
            self._starts[:] = True
        else:
            self._starts[0] |= np.asarray(ended, bool)

    def _act(self, observations: np.ndarray, deterministic: bool) -> np.ndarray:
        key = len(observations), deterministic
        if key not in self._policies:
            self._policies[key] = self._agent.policy(len(observations), deterministic, [self._seed])
        if key != self._latest:
            self._latest, self._starts = key, np.ones((1, len(observations)), bool)
        actions = self._policies[key](observations[None], self._starts)[0]
        self._starts = np.zeros_like(self._starts)
        return self._to_gymnasium(actions)


def load_trained_policy(directory: SessionDir, checkpoint: str = "best", seed: int | None = None) -> TrainedPolicy:
    """The policy of a session's checkpoint. `seed` is that of sampled actions, by default the session's own."""
    session = Session.from_record(directory.read_session(), directory.path)
    saved = read_checkpoint(directory, checkpoint)
    env = session.trial.env
    with closing(implementation(env)(env, 1, 1)) as made:
        agent = load_agent(session, made.spaces, saved)
        return TrainedPolicy(agent, made, session.seed if seed is None else seed)


def read_checkpoint(directory: SessionDir, which: str) -> Checkpoint:
    """The `best` or the `last` checkpoint of a session, or one that a hook has named."""
    named = [path.name for path in directory.checkpoints.glob("*") if path.name[0].isalpha()]
    if which not in CHECKPOINTS and which not in named:
        known = list(dict.fromkeys((*CHECKPOINTS, *named)))
        raise SpecError(f"there is no checkpoint {which!r}; {suggestion(which, known)}")
    saved = load_checkpoint(directory.checkpoints, tag=None if which == "last" else which, any_schema=True)
    if saved is None:
        raise StoreError(f"the session in {directory.path} has no checkpoint yet")
    return saved


def load_agent(session: Session, spaces: Spaces, saved: Checkpoint) -> Learner:
    """The agent of one session with the policy of a checkpoint, on the CPU, which is fastest for few environments."""
    trial = session.trial
    learner: type[Learner] = implementation(trial.agent)
    agent = learner(
        AgentContext(
            specs=[trial.agent],
            seeds=[session.seed],
            spaces=spaces,
            num_envs=trial.env.num_envs,
            frames=trial.budget.frames,
            compute=trial.compute.with_(device="cpu", compile="off"),
        )
    )
    agent.restore_policy(0, saved.state["agent"])
    return agent


def gymnasium_actions(env: VectorEnv) -> Callable[[np.ndarray], np.ndarray]:
    """From actions as agents give them, continuous ones in [-1, 1], to those of Gymnasium's action space."""
    action = env.spaces.action
    if isinstance(env, GymnasiumEnv):
        return env.native_actions
    if isinstance(action, Continuous):
        return lambda actions: action.rescale(actions).astype(np.float32)
    return lambda actions: actions
